"""What workers find around them."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

from tests.fray.processes.helpers import LIMIT_S
from treadle.errors import ArgumentError, ClusterError
from treadle.fray import ActorRequest, EnvironmentConfig, JobRequest
from treadle.fray.processes import ProcessClient

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def look(variable: str = "COLOUR") -> tuple[str | None, str, list[str]]:
    return os.environ.get(variable), os.getcwd(), sys.path  # noqa: PTH109


class Looking:
    def look(self) -> tuple[str | None, str, list[str]]:
        return look()


def test_they_are_where_the_driver_is(
    client: ProcessClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = client.submit(JobRequest("look", look)).result(LIMIT_S)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "more"))
    _, folder, path = client.submit(JobRequest("look", look)).result(LIMIT_S)
    assert (folder, path) == (str(tmp_path), sys.path)
    monkeypatch.undo()
    assert client.submit(JobRequest("look", look)).result(LIMIT_S) == first


def test_an_environment_is_that_of_its_jobs_only(client: ProcessClient, tmp_path: Path) -> None:
    asked = EnvironmentConfig(
        env_vars={"COLOUR": "red"}, working_dir=str(tmp_path), python_path=(str(tmp_path),)
    )
    for _ in range(2):
        colour, folder, path = client.submit(JobRequest("look", look, environment=asked)).result(LIMIT_S)
        assert (colour, folder, path[0]) == ("red", str(tmp_path), str(tmp_path))
        colour, folder, path = client.submit(JobRequest("look", look)).result(LIMIT_S)
        assert (colour, folder) == (None, os.getcwd())  # noqa: PTH109
        assert str(tmp_path) not in path
    assert client.create_actor(ActorRequest("look", Looking, environment=asked)).look()[0] == "red"


def test_the_environment_of_the_client_is_that_of_jobs_that_ask_for_none(tmp_path: Path) -> None:
    with ProcessClient(1, environment=EnvironmentConfig(env_vars={"COLOUR": "blue"})) as client:
        assert client.submit(JobRequest("look", look)).result(LIMIT_S)[0] == "blue"
        red = EnvironmentConfig(env_vars={"COLOUR": "red"})
        assert client.submit(JobRequest("look", look, environment=red)).result(LIMIT_S)[0] == "red"


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        (EnvironmentConfig(pip=("six",)), "pip: only Ray installs packages"),
        (
            EnvironmentConfig(working_dir="/no/such/folder"),
            "working_dir: there is no folder '/no/such/folder'",
        ),
        (EnvironmentConfig(python_path=("/no/such/path",)), "python_path: there is no '/no/such/path'"),
    ],
)
def test_what_cannot_be_had_is_refused_at_once(
    client: ProcessClient, environment: EnvironmentConfig, reason: str
) -> None:
    with pytest.raises(ArgumentError, match=f"job 'look': environment: {reason}"):
        client.submit(JobRequest("look", look, environment=environment))
    with pytest.raises(ArgumentError, match=f"actor 'look': environment: {reason}"):
        client.create_actor(ActorRequest("look", Looking, environment=environment))
    with pytest.raises(ArgumentError, match=f"client: environment: {reason}"):
        ProcessClient(1, environment=environment)


def test_a_folder_that_goes_meanwhile_fails_its_jobs(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with ProcessClient(1) as client:
        job = client.submit(JobRequest("look", partial(folder.rmdir)))
        asked = EnvironmentConfig(working_dir=str(folder))
        later = client.submit(JobRequest("look", look, environment=asked))
        job.result(LIMIT_S)
        with pytest.raises(ClusterError, match="folder"):
            later.result(LIMIT_S)


@pytest.mark.parametrize(("name", "value"), [("max_workers", 0), ("max_result_bytes", 0), ("grace", -1.0)])
def test_numbers_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ArgumentError, match=name):
        ProcessClient(**{name: value})  # type: ignore[arg-type]
