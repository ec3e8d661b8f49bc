"""Step logs inside jobs and jobs inside step logs: the step hears all of its own, the job what is echoed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.execution.running.capture import capture
from treadle.execution.running.step_log import step_log
from treadle.fray import JobHandle, JobRequest, ThreadClient, current_client

LOGGER = logging.getLogger("treadle.test.jobs")


@pytest.fixture
def client() -> Iterator[ThreadClient]:
    with ThreadClient(2) as client, capture():
        yield client


def texts(path: Path) -> list[str]:
    return [line.partition(" | ")[2] for line in path.read_text().splitlines()] if path.exists() else []


def test_a_job_has_the_echo_of_the_step_in_it(client: ThreadClient, tmp_path: Path) -> None:
    def body() -> None:
        print("before")
        with step_log(tmp_path / "train.log", "train", 1):
            print("within")
        print("after")

    job = client.submit(JobRequest("job", body))
    job.result()
    assert job.logs() == ["before", "train | within", "after"]
    assert texts(tmp_path / "train.log") == ["within"]


def test_without_an_echo_it_has_nothing(client: ThreadClient, tmp_path: Path) -> None:
    def body() -> None:
        with step_log(tmp_path / "train.log", "train", 1, echo=False):
            print("within")

    job = client.submit(JobRequest("job", body))
    job.result()
    assert job.logs() == []
    assert texts(tmp_path / "train.log") == ["within"]


def test_a_step_has_what_its_jobs_print_and_log(client: ThreadClient, tmp_path: Path) -> None:
    children: list[JobHandle[None]] = []

    def child() -> None:
        print("child")
        LOGGER.warning("careful")

    def body() -> None:
        with step_log(tmp_path / "train.log", "train", 1):
            children.append(current_client().submit(JobRequest("child", child)))
            children[0].result()

    job = client.submit(JobRequest("job", body))
    job.result()
    said = ["child", "WARNING treadle.test.jobs: careful"]
    assert texts(tmp_path / "train.log") == said
    assert children[0].logs()[0] == "child"
    assert job.logs()[0] == "train | child"


def test_a_step_within_a_job_of_a_step_has_its_own(client: ThreadClient, tmp_path: Path) -> None:
    def inner() -> None:
        with step_log(tmp_path / "inner.log", "inner", 1):
            print("within")

    with capture(), step_log(tmp_path / "outer.log", "outer", 1):  # pytest sets its streams after fixtures
        print("before")
        job = client.submit(JobRequest("job", inner))
        job.result()
        print("after")
    assert texts(tmp_path / "outer.log") == ["before", "after"]
    assert texts(tmp_path / "inner.log") == ["within"]
    assert job.logs() == ["inner | within"]


def test_a_handler_made_in_a_job_that_has_ended_is_heard_later(tmp_path: Path) -> None:
    """It has kept the stream of its time."""
    handlers: list[logging.Handler] = []

    def configure() -> None:
        handlers.append(logging.StreamHandler())
        LOGGER.addHandler(handlers[0])

    def body() -> None:
        with step_log(tmp_path / "train.log", "train", 1):
            LOGGER.warning("careful")

    with ThreadClient(1) as client:
        client.submit(JobRequest("configure", configure)).result()
        try:
            with capture():
                client.submit(JobRequest("job", body)).result()
        finally:
            LOGGER.removeHandler(handlers[0])
    assert texts(tmp_path / "train.log") == ["careful"]


def test_a_job_without_a_step_does_not_log_by_the_run(
    client: ThreadClient, capfd: pytest.CaptureFixture[str]
) -> None:
    job = client.submit(JobRequest("job", lambda: LOGGER.info("not for the eyes of a job")))
    job.result()
    assert job.logs() == []
