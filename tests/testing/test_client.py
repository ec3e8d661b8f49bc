"""The recording client: what it was asked for, and the faults that it is told to show."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from treadle.artifacts import Store
from treadle.errors import ArgumentError, StepsFailedError, WorkerLostError
from treadle.execution import Retry, StepRunner, StepSpec
from treadle.fray import (
    ActorHandle,
    ActorRequest,
    Client,
    JobRequest,
    JobStatus,
    ResourceConfig,
    current_client,
)
from treadle.testing import EventLog, RecordingClient, temporary_store

SOON = Retry(attempts=1, delay=0.0, jitter=0.0, losses=2)


@pytest.fixture
def store() -> Iterator[Store]:
    with temporary_store() as store:
        yield store


def test_it_is_a_client_and_records_in_order() -> None:
    with RecordingClient(1, resources=ResourceConfig(cpu=4, tags={"licence": 1})) as client:
        face: Client = client
        jobs = [face.submit(JobRequest(name, lambda: current_client())) for name in "ab"]
        assert [job.result() for job in jobs] == [client, client]
    assert client.names == ["a", "b"]
    assert client.peak == 1
    assert client.resources().tags == {"licence": 1}
    with pytest.raises(ArgumentError, match="shut down"):
        client.submit(JobRequest("c", lambda: 1))


def test_it_records_actors_and_makes_them() -> None:
    with RecordingClient(2) as client:
        face: Client = client
        letters: ActorHandle[list[str]] = face.create_actor(ActorRequest("letters", partial(list, "abc")))
        assert letters.count("b") == 1
        assert (face.max_workers, face.shares_memory) == (2, True)
    assert [each.name for each in client.actors] == ["letters"]
    assert client.names == []


def test_the_requests_of_a_run_have_the_ids_and_the_resources_of_its_steps(store: Store) -> None:
    two = ResourceConfig(cpu=2)
    first = StepSpec("first", lambda path: 1, output_path_prefix=store.prefix)
    second = StepSpec("second", lambda path: 2, [first], resources=two, output_path_prefix=store.prefix)
    with RecordingClient(resources=ResourceConfig(cpu=2)) as client:
        StepRunner(fray_client=client).run([second])
    assert [(each.name, each.resources) for each in client.requests] == [
        (first.id, ResourceConfig()),
        (second.id, two),
    ]


def test_peak_counts_what_runs_at_one_moment() -> None:
    together = threading.Barrier(3)
    with RecordingClient(3) as client:
        jobs = [client.submit(JobRequest("x", together.wait)) for _ in range(3)]
        assert sorted(job.result() for job in jobs) == [0, 1, 2]
    assert client.peak == 3


def test_a_job_can_be_refused_some_times_by_a_pattern() -> None:
    with RecordingClient() as client:
        client.refuse("train-*", ValueError("no room"))
        client.refuse("train-*", times=1)
        assert client.submit(JobRequest("test-1", lambda: 1)).result() == 1
        with pytest.raises(ValueError, match="no room"):
            client.submit(JobRequest("train-1", lambda: 1))
        with pytest.raises(WorkerLostError, match="train"):
            client.submit(JobRequest("train-2", lambda: 1))
        assert client.submit(JobRequest("train-3", lambda: 1)).result() == 1
    assert client.names == ["test-1", "train-1", "train-2", "train-3"]


@pytest.mark.parametrize("after", [False, True])
def test_a_job_can_be_lost_before_or_after_its_work(after: bool) -> None:
    done: list[int] = []
    with RecordingClient() as client:
        client.lose("x", after=after)
        lost, fine = (client.submit(JobRequest("x", lambda: done.append(1))) for _ in range(2))
        assert lost.wait() is JobStatus.FAILED
        with pytest.raises(WorkerLostError, match="lost by the test"):
            lost.result()
        fine.result()
    assert len(done) == 1 + after


def test_a_lost_worker_is_no_fault_of_the_step_and_its_work_is_not_done_twice(store: Store) -> None:
    ran: list[str] = []
    step = StepSpec("a", ran.append, retry=SOON, output_path_prefix=store.prefix)
    log = EventLog()
    with RecordingClient() as client:
        client.lose("a-*")
        client.lose("a-*", after=True)
        StepRunner(fray_client=client, reporter=log).run([step])
    assert client.names == [step.id] * 3
    assert len(ran) == 1, "what was committed before the worker was lost is served"
    assert log.ends() == {step.id: "cached"}


def test_a_refused_step_fails_and_others_go_on(store: Store) -> None:
    steps = [StepSpec(name, lambda path: 1, output_path_prefix=store.prefix) for name in ("a", "b")]
    with RecordingClient() as client, pytest.raises(StepsFailedError, match="refused by the test") as caught:
        client.refuse("a-*", times=9)
        StepRunner(fray_client=client).run(steps)
    assert list(caught.value.results) == [steps[1].id]
