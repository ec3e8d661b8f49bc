"""Several jobs: as many at once as there are workers, and waiting for all or for each."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, Open, in_this_machine, note, noted, wait_for, wait_until
from treadle.fray import Client, JobRequest, JobStatus, as_completed, wait_all

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def come_and_go(book: Path) -> None:
    note(book, "+1")
    time.sleep(0.02)
    note(book, "-1")


def meet(folder: Path, number: int, count: int) -> int:
    (folder / str(number)).touch()
    wait_until(lambda: len(list(folder.iterdir())) == count)
    return number


def fail() -> None:
    raise ValueError("no")


def through(gate: Path) -> str:
    wait_for(gate)
    return gate.name


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_bodies_run_at_once_than_there_are_workers(
    open_client: Open, tmp_path: Path, workers: int
) -> None:
    client, book = open_client(workers), tmp_path / "book"
    count = 4 * client.max_workers
    jobs = [client.submit(JobRequest("body", partial(come_and_go, book))) for _ in range(count)]
    assert wait_all(jobs, LIMIT_S) == [JobStatus.SUCCEEDED] * len(jobs)
    inside = most = 0
    for step in noted(book):
        inside += int(step)
        most = max(most, inside)
    assert (inside, len(noted(book))) == (0, 2 * count)
    assert most <= client.max_workers


def test_as_many_run_at_once_as_there_are_workers(client: Client, tmp_path: Path) -> None:
    count = client.max_workers
    jobs = [client.submit(JobRequest("meet", partial(meet, tmp_path, n, count))) for n in range(count)]
    assert [job.result(LIMIT_S) for job in jobs] == list(range(count))


@in_this_machine
def test_a_client_has_as_many_workers_as_were_asked_for(open_client: Open) -> None:
    assert [open_client(workers).max_workers for workers in (1, 3)] == [1, 3]


@in_this_machine
def test_jobs_begin_in_the_order_in_which_they_came(open_client: Open, tmp_path: Path) -> None:
    client, book = open_client(1), tmp_path / "book"
    jobs = [client.submit(JobRequest("note", partial(note, book, str(number)))) for number in range(20)]
    wait_all(jobs, LIMIT_S, raise_on_failure=True)
    assert noted(book) == [str(number) for number in range(20)]


def test_the_statuses_of_all_in_their_order(client: Client) -> None:
    jobs = [
        client.submit(JobRequest("fail", fail)),
        client.submit(JobRequest("one", partial(int, "1"))),
    ]
    assert wait_all(jobs, LIMIT_S) == [JobStatus.FAILED, JobStatus.SUCCEEDED]
    assert wait_all([], LIMIT_S) == []


def test_the_first_failure_is_raised_while_others_run(client: Client, tmp_path: Path) -> None:
    slow = client.submit(JobRequest("slow", partial(through, tmp_path / "gate")))
    with pytest.raises(ValueError, match="no"):
        wait_all([slow, client.submit(JobRequest("fail", fail))], LIMIT_S, raise_on_failure=True)
    assert slow.status() in (JobStatus.RUNNING, JobStatus.PENDING)
    (tmp_path / "gate").touch()
    assert slow.result(LIMIT_S) == "gate"


def test_a_limit_names_the_jobs_that_still_run(client: Client, tmp_path: Path) -> None:
    quick = client.submit(JobRequest("quick", partial(int, "1")))
    quick.wait(LIMIT_S)
    slow = client.submit(JobRequest("slow", partial(through, tmp_path / "gate")))
    with pytest.raises(TimeoutError, match=r"1 jobs have not ended .*slow"):
        wait_all([quick, slow], 0.05)
    (tmp_path / "gate").touch()
    assert slow.result(LIMIT_S) == "gate"


def test_each_as_it_ends(client: Client, tmp_path: Path) -> None:
    gates = [tmp_path / name for name in ("a", "b", "c")]
    jobs = [client.submit(JobRequest(gate.name, partial(through, gate))) for gate in gates]
    ends = as_completed(jobs, LIMIT_S)
    for gate in reversed(gates):
        gate.touch()
        assert next(ends).result() == gate.name
    assert list(ends) == []
