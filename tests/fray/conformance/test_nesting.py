"""Jobs that submit jobs and wait for them: to any depth, with a single worker."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, Open, wait_for, wait_until
from treadle.errors import UsageError
from treadle.fray import (
    Client,
    JobRequest,
    JobStatus,
    as_completed,
    current_client,
    stop_requested,
    wait_all,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def leaves_by_result(depth: int) -> int:
    if not depth:
        return 1
    jobs = [current_client().submit(JobRequest("child", partial(leaves_by_result, depth - 1))) for _ in "ab"]
    return sum(job.result() for job in jobs)


def leaves_by_wait_all(depth: int) -> int:
    if not depth:
        return 1
    below = partial(leaves_by_wait_all, depth - 1)
    jobs = [current_client().submit(JobRequest("child", below)) for _ in "ab"]
    wait_all(jobs, raise_on_failure=True)
    return sum(job.result() for job in jobs)


def leaves_as_completed(depth: int) -> int:
    if not depth:
        return 1
    below = partial(leaves_as_completed, depth - 1)
    jobs = [current_client().submit(JobRequest("child", below)) for _ in "ab"]
    return sum(job.result() for job in as_completed(jobs))


def chain(depth: int) -> int:
    if not depth:
        return 0
    return 1 + current_client().submit(JobRequest("next", partial(chain, depth - 1))).result()


def fail() -> None:
    raise UsageError("deep down")


def ask_child_to_fail() -> None:
    current_client().submit(JobRequest("child", fail)).result()


def about_the_current_client() -> tuple[int, bool, float]:
    client = current_client()
    return client.max_workers, client.shares_memory, client.resources().cpu


def child_until_stopped(folder: Path) -> None:
    (folder / "started").touch()
    wait_until(stop_requested)
    (folder / "asked").touch()


def parent_of_it(folder: Path) -> None:
    current_client().submit(JobRequest("child", partial(child_until_stopped, folder))).result()


def parent_that_leaves(folder: Path) -> str:
    return current_client().submit(JobRequest("child", partial(reached, folder))).job_id


def reached(folder: Path) -> None:
    wait_for(folder / "gate")
    (folder / "reached").touch()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("tree", [leaves_by_result, leaves_by_wait_all, leaves_as_completed])
def test_whoever_waits_makes_room(open_client: Open, workers: int, tree: Callable[[int], int]) -> None:
    """The commonest deadlock of bounded pools: the parent holds the place that its child needs."""
    client = open_client(workers)
    assert client.submit(JobRequest("root", partial(tree, 2))).result(LIMIT_S) == 4


def test_a_chain_of_jobs_that_wait_may_be_longer_than_there_are_workers(open_client: Open) -> None:
    client = open_client(1)
    depth = client.max_workers + 2
    assert client.submit(JobRequest("first", partial(chain, depth))).result(LIMIT_S) == depth


def test_the_error_of_a_child_comes_up(client: Client) -> None:
    with pytest.raises(UsageError, match="deep down"):
        client.submit(JobRequest("parent", ask_child_to_fail)).result(LIMIT_S)


def test_the_current_client_of_a_job_is_the_same_place(client: Client) -> None:
    told = client.submit(JobRequest("ask", about_the_current_client)).result(LIMIT_S)
    assert told == (client.max_workers, client.shares_memory, client.resources().cpu)


def test_a_job_that_is_stopped_stops_its_children(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("parent", partial(parent_of_it, tmp_path)))
    wait_for(tmp_path / "started")
    job.terminate()
    wait_for(tmp_path / "asked")
    assert job.wait(LIMIT_S) in (JobStatus.SUCCEEDED, JobStatus.STOPPED)


def test_a_child_goes_on_when_its_parent_has_ended(client: Client, tmp_path: Path) -> None:
    client.submit(JobRequest("parent", partial(parent_that_leaves, tmp_path))).result(LIMIT_S)
    (tmp_path / "gate").touch()
    wait_for(tmp_path / "reached")
