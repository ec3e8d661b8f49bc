"""Clusters by name, from the settings of the project around the current folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from treadle.errors import ArgumentError, UnknownNameError
from treadle.fray import FrayClient, JobRequest, current_client


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
    with pytest.raises(UnknownNameError, match=r"did you mean 'production'.*known: local, production"):
        FrayClient("prodction")


def test_an_unknown_backend_lists_the_known(project: Path) -> None:
    (project / "treadle.toml").write_text('[clusters.big]\nbackend = "slurm"\n')
    with pytest.raises(UnknownNameError, match=r"fray backend 'slurm'.*known: threads"):
        FrayClient("big")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[clusters.big]\nbackend = 'threads'\nworkers = 3\n",
            "unknown key of .*clusters.big 'workers'",
        ),
        ("[clusters.big]\nmax_workers = 3\n", "treadle.toml: clusters.big: backend: expected one of threads"),
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
    ],
)
def test_wrong_settings_name_the_file_and_the_key(project: Path, text: str, message: str) -> None:
    (project / "treadle.toml").write_text(text)
    with pytest.raises((ArgumentError, UnknownNameError), match=message):
        FrayClient("big")
