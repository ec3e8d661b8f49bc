"""The end of a client, and clients by name."""

from __future__ import annotations

import sys
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, Open, note, noted, wait_for, wait_until
from treadle.errors import ArgumentError
from treadle.fray import ActorRequest, Client, FrayClient, JobRequest, current_client, stop_requested

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def through(started: Path, gate: Path) -> str:
    started.touch()
    wait_for(gate)
    return "through"


def until_stopped(started: Path) -> str:
    started.touch()
    wait_until(stop_requested)
    return "asked"


def through_child() -> int:
    return current_client().submit(JobRequest("child", partial(int, "7"))).result()


def test_a_client_that_was_shut_down_takes_nothing(open_client: Open) -> None:
    client = open_client(1)
    client.shutdown()
    client.shutdown()
    with pytest.raises(ArgumentError, match=r"'late'.*shut down"):
        client.submit(JobRequest("late", int))
    with pytest.raises(ArgumentError, match=r"'late'.*shut down"):
        client.create_actor(ActorRequest("late", int))


def test_with_a_wait_all_that_was_taken_is_done(open_client: Open, tmp_path: Path) -> None:
    client, book = open_client(2), tmp_path / "book"
    jobs = [client.submit(JobRequest("note", partial(note, book, str(number)))) for number in range(10)]
    client.shutdown()
    assert sorted(noted(book)) == sorted(str(number) for number in range(10))
    assert [job.result(LIMIT_S) for job in jobs] == [None] * 10


def test_without_a_wait_jobs_that_run_go_on(open_client: Open, tmp_path: Path) -> None:
    client = open_client(1)
    job = client.submit(JobRequest("slow", partial(through, tmp_path / "started", tmp_path / "gate")))
    wait_for(tmp_path / "started")
    client.shutdown(wait=False)
    with pytest.raises(ArgumentError, match="shut down"):
        client.submit(JobRequest("late", int))
    (tmp_path / "gate").touch()
    assert job.result(LIMIT_S) == "through"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_a_block_that_an_error_leaves_ends_its_jobs(
    open_client: Open, tmp_path: Path, error: type[BaseException]
) -> None:
    client: Any = open_client(1)
    with pytest.raises(error), client:
        runs = client.submit(JobRequest("runs", partial(until_stopped, tmp_path / "started")))
        waits = client.submit(JobRequest("waits", partial(note, tmp_path / "book", "waits")))
        wait_for(tmp_path / "started")
        raise error
    assert runs.result(0) == "asked"
    with pytest.raises(CancelledError, match=f"job {waits.job_id} was terminated"):
        waits.result(0)
    assert not noted(tmp_path / "book")


@pytest.mark.parametrize("backend", ["threads", "processes"], indirect=True)
def test_a_client_by_name_does_the_same(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt), FrayClient("local" if backend == "threads" else backend) as client:
        job = client.submit(JobRequest("runs", partial(until_stopped, tmp_path / "started")))
        wait_for(tmp_path / "started")
        raise KeyboardInterrupt
    assert job.result(0) == "asked"


def test_each_has_a_name_among_the_clusters(
    backend: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with FrayClient("local" if backend == "threads" else backend) as named:
        assert named.shares_memory is client.shares_memory
        assert named.submit(JobRequest("parent", through_child)).result(LIMIT_S) == 7
        assert named.create_actor(ActorRequest("list", partial(list, "abc"))).count("b") == 1
