"""What jobs on threads print: heard by their own job only, passed on untouched, streams put back."""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import pytest

from treadle.fray import JobHandle, JobRequest, ThreadClient, current_client
from treadle.kernel import carry


class Terminal(io.TextIOWrapper):
    """A stream with a binary face, whose text can be read back."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined, no-any-return]


@contextmanager
def terminal() -> Iterator[Terminal]:
    """In place of stdout; a fixture cannot, since pytest sets its own after the fixtures."""
    before, sys.stdout = sys.stdout, Terminal()
    mine = sys.stdout
    try:
        yield mine
        assert sys.stdout is mine, "the stream is put back"
    finally:
        sys.stdout = before


def test_output_is_passed_on_as_it_was_written() -> None:
    def body() -> None:
        sys.stdout.write("in pieces")
        sys.stdout.buffer.write(b" and bytes\n")
        sys.stdout.writelines(["no end", " but one\n"])

    with terminal() as screen, ThreadClient(1) as client:
        job = client.submit(JobRequest("say", body))
        job.result()
    assert screen.text() == "in pieces and bytes\nno end but one\n"
    assert job.logs() == ["in pieces and bytes", "no end but one"]


def test_what_is_printed_outside_of_jobs_is_nobodys() -> None:
    started, gate = threading.Event(), threading.Event()

    def body() -> None:
        print("mine")
        started.set()
        gate.wait()

    with terminal() as screen, ThreadClient(1) as client:
        job = client.submit(JobRequest("say", body))
        started.wait()
        print("not mine")
        gate.set()
        job.result()
        assert job.logs() == ["mine"]
    assert screen.text() == "mine\nnot mine\n"


def test_a_child_is_not_heard_by_its_parent() -> None:
    children: list[JobHandle[None]] = []

    def parent() -> None:
        children.append(current_client().submit(JobRequest("child", lambda: print("child"))))
        children[0].result()
        print("parent")

    with ThreadClient(1) as client:
        job = client.submit(JobRequest("parent", parent))
        job.result()
    assert (job.logs(), children[0].logs()) == (["parent"], ["child"])


def test_threads_of_a_job_belong_to_it_until_it_ends() -> None:
    gate, done = threading.Event(), threading.Event()

    def late() -> None:
        print("in time")
        done.set()
        gate.wait()
        print("too late")

    threads: list[threading.Thread] = []

    def body() -> None:
        threads.append(threading.Thread(target=carry(late)))
        threads[0].start()
        done.wait()

    with terminal() as screen, ThreadClient(1) as client:
        job = client.submit(JobRequest("say", body))
        job.result()
        gate.set()
        threads[0].join()
        assert job.logs() == ["in time"]
    assert screen.text() == "in time\ntoo late\n"


def test_streams_that_others_set_meanwhile_stay_theirs() -> None:
    theirs, started, gate = io.StringIO(), threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        gate.wait()

    with terminal() as screen, ThreadClient(2) as client:
        job = client.submit(JobRequest("slow", slow))
        started.wait()
        with redirect_stdout(theirs):
            print("into theirs")
            other = client.submit(JobRequest("other", lambda: print("from a job")))
            other.result()
            assert sys.stdout is theirs
        gate.set()
        job.result()
    assert theirs.getvalue() == "into theirs\nfrom a job\n"
    assert (other.logs(), screen.text()) == (["from a job"], "")


def test_jobs_leave_logging_alone(capfd: pytest.CaptureFixture[str]) -> None:
    def body() -> tuple[int, int]:
        return logging.root.level, len(logging.root.handlers)

    before = body()
    with ThreadClient(1) as client:
        assert client.submit(JobRequest("look", body)).result() == before


def test_a_closed_stream_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with ThreadClient(1) as client:
        job = client.submit(JobRequest("say", lambda: print("to nobody")))
        job.result()
        assert job.logs() == []
    assert sys.stdout is None
