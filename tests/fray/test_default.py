"""The client of those who have set none: one for each process, as the settings say."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from treadle.errors import ArgumentError, UnknownNameError
from treadle.fray import (
    FrayClient,
    JobRequest,
    ThreadClient,
    current_client,
    default_client,
    has_current_client,
    set_current_client,
)


@pytest.fixture(autouse=True)
def nobody_has_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.fray.default._default", None)
    monkeypatch.delenv("TREADLE_CLUSTER", raising=False)
    monkeypatch.chdir(tmp_path)


def test_where_none_is_set_there_is_one_of_threads_and_only_one() -> None:
    assert not has_current_client()
    clients = []
    together = threading.Barrier(8)

    def ask() -> None:
        together.wait(20)
        clients.append(current_client())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {id(each) for each in clients} == {id(default_client())}
    assert clients[0].shares_memory
    assert clients[0].submit(JobRequest("one", lambda: 1)).result() == 1
    assert not has_current_client(), "nobody has set it"


def test_one_that_is_set_goes_first() -> None:
    with ThreadClient(1) as client, set_current_client(client):
        assert current_client() is client


def test_its_jobs_have_it_as_their_current_client() -> None:
    client = default_client()
    assert client.submit(JobRequest("ask", current_client)).result() is client


def test_the_settings_name_its_cluster_and_the_environment_goes_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "treadle.toml").write_text(
        'cluster = "small"\n[clusters.small]\nbackend = "threads"\nmax_workers = 1\n'
        '[clusters.big]\nbackend = "threads"\nmax_workers = 64\n'
    )
    assert default_client().max_workers == 1
    monkeypatch.setattr("treadle.fray.default._default", None)
    monkeypatch.setenv("TREADLE_CLUSTER", "big")
    client = default_client()
    assert isinstance(client, FrayClient)
    assert (client.cluster, client.max_workers) == ("big", 64)


def test_a_wrong_name_lists_the_known_and_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "treadle.toml").write_text("cluster = 3\n")
    with pytest.raises(ArgumentError, match=r"treadle.toml: cluster: expected the name .* got 3"):
        current_client()
    monkeypatch.setenv("TREADLE_CLUSTER", "lokal")
    with pytest.raises(UnknownNameError, match="did you mean 'local'"):
        current_client()
    monkeypatch.delenv("TREADLE_CLUSTER")
    (tmp_path / "treadle.toml").write_text('cluster = "local"\n')
    assert current_client().submit(JobRequest("one", lambda: 1)).result() == 1


FORK = """
import os, threading
from treadle.fray import JobRequest, current_client

before, gate = current_client(), threading.Event()
busy = before.submit(JobRequest("busy", gate.wait))
child = os.fork()
if not child:
    after = current_client()
    assert after is not before
    assert after.submit(JobRequest("one", lambda: 1)).result() == 1
    before.shutdown()  # the job that runs is the parent's: nobody waits for it here
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
gate.set()
assert busy.result() and current_client() is before
print("well")
"""


def test_a_fork_has_its_own(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run(
        [sys.executable, "-c", FORK],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.stdout, ran.stderr) == ("well\n", "")
