"""Clusters by name, from the settings of the project around the current folder."""

import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from treadle.errors import ArgumentError, MissingExtraError, UnknownNameError
from treadle.fray import ActorHandle, ActorRequest, Client, FrayClient, JobRequest, current_client


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inner = tmp_path / "deep" / "inside"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return tmp_path


def test_local_needs_no_settings() -> None:
    with FrayClient() as client:
        assert client.submit(JobRequest("one", lambda: 1)).result() == 1


def test_a_name_is_found_in_a_treadle_toml_further_up(project: Path) -> None:
    (project / "treadle.toml").write_text('[clusters.big]\nbackend = "threads"\nmax_workers = 1\n')
    with FrayClient(cluster="big") as client:
        assert client.submit(JobRequest("ask", current_client)).result() is client


def test_a_name_is_found_in_pyproject(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.treadle.clusters.big]\nbackend = "threads"\n')
    with FrayClient("big") as client:
        assert client.submit(JobRequest("one", lambda: 1)).result() == 1


def test_a_pyproject_without_our_table_is_passed_by(project: Path) -> None:
    (project / "deep" / "pyproject.toml").write_text("[tool.other]\n")
    (project / "treadle.toml").write_text('[clusters.big]\nbackend = "threads"\n')
    FrayClient("big")


def test_a_cluster_says_what_it_has_and_the_machine_gives_the_rest(project: Path) -> None:
    (project / "treadle.toml").write_text(
        '[clusters.big]\nbackend = "threads"\ncpu = 2.5\ngpu = 1\ntags = { licence = 3 }\n'
    )
    machine = FrayClient().resources()
    assert FrayClient("big").resources() == replace(machine, cpu=2.5, gpu=1, tags={"licence": 3})


def test_an_unknown_cluster_lists_the_known(project: Path) -> None:
    (project / "treadle.toml").write_text('[clusters.production]\nbackend = "threads"\n')
    with pytest.raises(
        UnknownNameError, match=r"did you mean 'production'.*known: local, processes, production, ray"
    ):
        FrayClient("prodction")


def test_an_unknown_backend_lists_the_known(project: Path) -> None:
    (project / "treadle.toml").write_text('[clusters.big]\nbackend = "slurm"\n')
    with pytest.raises(
        UnknownNameError, match=r"treadle.toml: clusters.big 'slurm'.*known: processes, ray, threads"
    ):
        FrayClient("big")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[clusters.big]\nbackend = 'threads'\nworkers = 3\n",
            "unknown key of .*clusters.big 'workers'",
        ),
        (
            "[clusters.big]\nmax_workers = 3\n",
            "treadle.toml: clusters.big: backend: expected one of processes, ray, threads",
        ),
        ("[clusters.big]\nbackend = ['threads']\n", r"clusters.big: backend: .*, got \['threads'\]"),
        ("[clusters]\nbig = 3\n", "clusters.big: expected a table, got 3"),
        ("clusters = 3\n", "clusters: expected a table, got 3"),
        ("[clusters.big]\nbackend = 'threads'\nmax_workers = 0\n", "treadle.toml: clusters.big: max_workers"),
        ("clusters = [\n", "treadle.toml: expected TOML"),
        ("[clusters.big]\nbackend = 'threads'\ncpu = -1\n", "treadle.toml: clusters.big: cpu: .*, got -1"),
        (
            "[clusters.big]\nbackend = 'threads'\nmemory = 0.5\n",
            "memory: expected a whole number .*, got 0.5",
        ),
        ("[clusters.big]\nbackend = 'threads'\ntags = 3\n", "tags: expected a mapping .*, got 3"),
        (
            "[clusters.big]\nbackend = 'threads'\naddress = '10.0.0.7:6379'\n",
            "treadle.toml: clusters.big: address: only for ray, not for threads",
        ),
        (
            "[clusters.big]\nbackend = 'threads'\nmax_result_bytes = 10\n",
            "max_result_bytes: only for processes or ray, not for threads",
        ),
        (
            "[clusters.big]\nbackend = 'ray'\naddress = 7\n",
            "clusters.big: address: expected host:port .*got 7",
        ),
        (
            "[clusters.big]\nbackend = 'ray'\nconnect_timeout = 0\n",
            "connect_timeout: expected a number of seconds above 0, got 0",
        ),
        (
            "[clusters.big]\nbackend = 'processes'\nmax_result_bytes = '1 GB'\n",
            "max_result_bytes: expected a whole number of at least 1, got '1 GB'",
        ),
        ("[clusters.big]\nbackend = 'ray'\nenvironment = 3\n", "environment: expected a table, got 3"),
        (
            "[clusters.big]\nbackend = 'ray'\nenvironment = { env = { A = 'b' } }\n",
            "unknown key of .*clusters.big: environment 'env'.*env_vars, pip, python_path, working_dir",
        ),
        (
            "[clusters.big]\nbackend = 'ray'\nenvironment = { env_vars = { A = 1 } }\n",
            "treadle.toml: clusters.big: environment: env_vars: .*got 'A': 1",
        ),
        (
            "[clusters.big]\nbackend = 'threads'\nenvironment = { env_vars = { A = 'b' } }\n",
            "treadle.toml: clusters.big: environment: threads share",
        ),
    ],
)
def test_wrong_settings_name_the_file_and_the_key(project: Path, text: str, message: str) -> None:
    (project / "treadle.toml").write_text(text)
    with pytest.raises((ArgumentError, UnknownNameError), match=message):
        FrayClient("big")


def test_a_name_of_ours_can_be_described_anew(project: Path) -> None:
    (project / "treadle.toml").write_text('[clusters.local]\nbackend = "threads"\nmax_workers = 3\n')
    assert FrayClient().max_workers == 3


def test_ray_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"the Ray backend needs .*'treadle\[ray\]'"):
        FrayClient("ray")


def test_it_is_a_whole_client() -> None:
    with FrayClient() as client:
        face: Client = client
        assert face.shares_memory
        assert face.max_workers == os.cpu_count()
        counter: ActorHandle[list[str]] = face.create_actor(ActorRequest("list", partial(list, "abc")))
        assert counter.count("b") == 1
