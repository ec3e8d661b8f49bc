"""What jobs print: theirs to read while they run and after, and passed on."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, elsewhere, wait_for, wait_until
from treadle.errors import ArgumentError
from treadle.fray import Client, JobRequest, JobStatus

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def say(text: str) -> None:
    print(f"{text} to all")
    print(f"{text} to the wary", file=sys.stderr)
    sys.stdout.write("without an end")


def count(lines: int) -> None:
    for number in range(lines):
        print(f"line {number}")


def say_and_wait(gate: Path) -> None:
    print("begun", flush=True)
    wait_for(gate)
    print("ended", flush=True)


def say_and_fail() -> None:
    print("well so far")
    raise ValueError("no")


def say_and_die() -> None:
    print("the last words", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def test_both_streams_of_a_job_are_kept(client: Client) -> None:
    job = client.submit(JobRequest("say", partial(say, "hello")))
    job.result(LIMIT_S)
    wait_until(lambda: len(job.logs()) == 3)
    assert sorted(job.logs()) == ["hello to all", "hello to the wary", "without an end"]
    assert client.submit(JobRequest("silent", int)).logs() == []


def test_jobs_do_not_hear_each_other(client: Client) -> None:
    jobs = [client.submit(JobRequest("say", partial(say, str(number)))) for number in range(8)]
    for number, job in enumerate(jobs):
        job.result(LIMIT_S)
        wait_until(lambda job=job: len(job.logs()) == 3)  # type: ignore[misc]
        assert sorted(job.logs()) == [f"{number} to all", f"{number} to the wary", "without an end"]


def test_logs_are_there_while_the_job_runs(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("slow", partial(say_and_wait, tmp_path / "gate")))
    wait_until(lambda: job.logs() == ["begun"])
    assert job.status() is JobStatus.RUNNING
    (tmp_path / "gate").touch()
    job.result(LIMIT_S)
    wait_until(lambda: job.logs() == ["begun", "ended"])


def test_the_last_lines_are_given(client: Client) -> None:
    job = client.submit(JobRequest("count", partial(count, 500)))
    job.result(LIMIT_S)
    wait_until(lambda: job.logs(1) == ["line 499"])
    assert job.logs(3) == ["line 497", "line 498", "line 499"]
    assert job.logs() == [f"line {number}" for number in range(400, 500)]
    with pytest.raises(ArgumentError, match="max_lines"):
        job.logs(0)


def test_a_failed_job_has_its_log(client: Client) -> None:
    job = client.submit(JobRequest("fail", say_and_fail))
    job.wait(LIMIT_S)
    wait_until(lambda: "well so far" in job.logs())


@elsewhere
def test_a_killed_job_has_its_log(client: Client) -> None:
    job = client.submit(JobRequest("die", say_and_die))
    assert job.wait(LIMIT_S) is JobStatus.FAILED
    assert job.logs() == ["the last words"]


def test_what_jobs_print_is_passed_on(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    out, err = "", ""

    def passed_on() -> bool:
        nonlocal out, err
        more = capfd.readouterr()
        out, err = out + more.out, err + more.err
        return "a word to all" in out and "a word to the wary" in err

    client.submit(JobRequest("say", partial(say, "a word"))).result(LIMIT_S)
    wait_until(passed_on)
    assert "wary" not in out
