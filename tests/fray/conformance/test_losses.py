"""Workers that die under their jobs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, elsewhere, note, noted
from treadle.errors import WorkerLostError
from treadle.fray import Client, JobRequest, JobStatus, current_client

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def die(book: Path, how: Callable[[int], object]) -> None:
    print("the last words", flush=True)
    note(book, str(os.getpid()))
    how(os.getpid())


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def left(pid: int) -> None:
    os._exit(3)


def die_twice(book: Path) -> int:
    note(book, "try")
    if len(noted(book)) <= 2:
        killed(os.getpid())
    return len(noted(book))


def child_dies(book: Path) -> None:
    current_client().submit(JobRequest("child", partial(die, book, killed))).result()


@elsewhere
@pytest.mark.parametrize(("how", "told"), [(killed, "SIGKILL"), (left, "3")], ids=["killed", "left"])
def test_a_lost_worker_is_named_with_its_end(
    backend: str, client: Client, tmp_path: Path, how: Callable[[int], object], told: str
) -> None:
    book = tmp_path / "book"
    job = client.submit(JobRequest("doomed", partial(die, book, how)))
    assert job.wait(LIMIT_S) is JobStatus.FAILED
    with pytest.raises(WorkerLostError, match="doomed") as caught:
        job.result()
    (pid,) = noted(book)
    assert pid in str(caught.value)
    # Ray does not tell how a process ended.
    assert backend == "ray" or told in str(caught.value).replace(pid, "")
    assert "the last words" in "\n".join(caught.value.__notes__)
    assert "the last words" in job.logs()


@elsewhere
def test_losses_are_tried_again_as_often_as_was_asked(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("hardy", partial(die_twice, tmp_path / "book"), losses=2))
    assert job.result(LIMIT_S) == 3
    assert job.status() is JobStatus.SUCCEEDED


@elsewhere
def test_and_no_more_often(client: Client, tmp_path: Path) -> None:
    book = tmp_path / "book"
    job = client.submit(JobRequest("doomed", partial(die, book, killed), losses=1))
    with pytest.raises(WorkerLostError, match="doomed"):
        job.result(LIMIT_S)
    assert len(noted(book)) == 2


@elsewhere
def test_others_go_on(client: Client, tmp_path: Path) -> None:
    doomed = client.submit(JobRequest("doomed", partial(die, tmp_path / "book", killed)))
    others = [client.submit(JobRequest("other", partial(abs, -n))) for n in range(20)]
    assert [job.result(LIMIT_S) for job in others] == list(range(20))
    assert doomed.wait(LIMIT_S) is JobStatus.FAILED


@elsewhere
def test_the_loss_of_a_child_is_told_to_its_parent(client: Client, tmp_path: Path) -> None:
    with pytest.raises(WorkerLostError, match="child"):
        client.submit(JobRequest("parent", partial(child_dies, tmp_path / "book"))).result(LIMIT_S)
