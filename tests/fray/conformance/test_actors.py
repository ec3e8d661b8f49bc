"""Actors: state that stays, calls in order, and what becomes of them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, Open, elsewhere, note, noted, wait_for, wait_until
from treadle.errors import UsageError, WorkerLostError
from treadle.fray import (
    ActorHandle,
    ActorRequest,
    Client,
    JobRequest,
    JobStatus,
    create_actor_group,
    current_client,
    stop_requested,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Counter:
    def __init__(self, value: int = 0) -> None:
        self.value = value

    def add(self, amount: int, *, times: int = 1) -> int:
        self.value += amount * times
        return self.value

    def slow_add(self, amount: int) -> int:
        before = self.value
        time.sleep(0.005)
        self.value = before + amount
        return self.value

    def fail(self) -> None:
        self.value += 1
        raise ValueError("not this time")

    def say(self, text: str) -> None:
        print(text)

    def pid(self) -> int:
        return os.getpid()

    def die(self) -> None:
        os._exit(9)

    def through(self, started: Path, gate: Path) -> str:
        started.touch()
        wait_for(gate)
        return "through"

    def listen(self, started: Path) -> None:
        started.touch()
        wait_until(stop_requested)
        raise RuntimeError("stopped as asked")

    def square_by_job(self, number: int) -> int:
        return current_client().submit(JobRequest("square", partial(square, number))).result()

    def ask_itself(self, me: ActorHandle[Counter]) -> None:
        me.add(1)

    def come_and_go(self, book: Path) -> None:
        note(book, "+1")
        time.sleep(0.005)
        note(book, "-1")

    def echo(self, item: int) -> tuple[int, int]:
        return id(self), item


def square(number: int) -> int:
    return number * number


def cannot() -> Counter:
    raise OSError("no such device")


def add_from_job(counter: ActorHandle[Counter], amount: int) -> int:
    value: int = counter.add(amount)
    return value


def meet(folder: Path, number: int, count: int) -> int:
    (folder / str(number)).touch()
    wait_until(lambda: len(list(folder.iterdir())) == count)
    return number


@pytest.fixture
def counter(client: Client) -> ActorHandle[Counter]:
    return client.create_actor(ActorRequest("counter", partial(Counter, 5)))


def test_an_actor_keeps_its_state(counter: ActorHandle[Counter]) -> None:
    assert counter.add(1) == 6
    assert counter.submit("add", 2, times=3).result(LIMIT_S) == 12
    assert counter.restarts == 0
    assert "counter" in counter.actor_id


def test_its_calls_run_one_at_a_time_in_order(counter: ActorHandle[Counter], tmp_path: Path) -> None:
    jobs = [counter.submit("slow_add", 1) for _ in range(20)]
    assert [job.result(LIMIT_S) for job in jobs] == list(range(6, 26))
    for job in [counter.submit("come_and_go", tmp_path / "book") for _ in range(10)]:
        job.result(LIMIT_S)
    assert noted(tmp_path / "book") == ["+1", "-1"] * 10


def test_a_call_that_fails_does_the_object_no_harm(counter: ActorHandle[Counter]) -> None:
    job = counter.submit("fail")
    assert job.wait(LIMIT_S) is JobStatus.FAILED
    with pytest.raises(ValueError, match="not this time"):
        counter.fail()
    assert counter.add(0) == 7
    assert counter.restarts == 0


def test_a_method_that_is_not_there(counter: ActorHandle[Counter]) -> None:
    with pytest.raises(AttributeError, match="subtract"):
        counter.subtract(1)
    assert counter.add(1) == 6


def test_calls_have_logs_and_callbacks_and_statuses(counter: ActorHandle[Counter]) -> None:
    job = counter.submit("say", "hello")
    assert job.wait(LIMIT_S) is JobStatus.SUCCEEDED
    wait_until(lambda: job.logs() == ["hello"])
    assert counter.submit("add", 0).job_id != job.job_id


def test_an_object_that_cannot_be_made_fails_its_calls(client: Client) -> None:
    broken = client.create_actor(ActorRequest("broken", cannot))
    for _ in range(2):
        with pytest.raises(OSError, match="no such device"):
            broken.submit("add", 1).result(LIMIT_S)


def test_an_idle_actor_takes_no_place(client: Client, tmp_path: Path) -> None:
    count = client.max_workers
    counters = [client.create_actor(ActorRequest(f"idle-{n}", Counter)) for n in range(count + 1)]
    assert [each.add(1) for each in counters] == [1] * (count + 1)
    jobs = [client.submit(JobRequest("meet", partial(meet, tmp_path, n, count))) for n in range(count)]
    assert [job.result(LIMIT_S) for job in jobs] == list(range(count))
    assert [each.add(1) for each in counters] == [2] * (count + 1)
    for each in counters:
        each.terminate()


@pytest.mark.parametrize("workers", [1, 3])
def test_jobs_can_call_it(open_client: Open, workers: int) -> None:
    client = open_client(workers)
    counter = client.create_actor(ActorRequest("counter", Counter))
    jobs = [client.submit(JobRequest("add", partial(add_from_job, counter, 1))) for _ in range(6)]
    assert sorted(job.result(LIMIT_S) for job in jobs) == [1, 2, 3, 4, 5, 6]
    assert counter.add(0) == 6


def test_a_call_may_submit_jobs_and_wait_for_them(open_client: Open) -> None:
    client = open_client(1)
    counter = client.create_actor(ActorRequest("counter", Counter))
    assert counter.submit("square_by_job", 7).result(LIMIT_S) == 49


def test_a_call_that_would_wait_for_its_own_actor_is_refused(counter: ActorHandle[Counter]) -> None:
    with pytest.raises(UsageError, match=r"counter.*'add' of the same actor"):
        counter.submit("ask_itself", counter).result(LIMIT_S)
    assert counter.add(1) == 6


def test_a_terminated_actor_ends_its_calls(counter: ActorHandle[Counter], tmp_path: Path) -> None:
    running = counter.submit("listen", tmp_path / "started")
    pending = counter.submit("add", 1)
    wait_for(tmp_path / "started")
    counter.terminate()
    assert running.wait(LIMIT_S) in (JobStatus.STOPPED, JobStatus.FAILED)
    later = counter.submit("add", 1)
    for job in (pending, later):
        assert job.wait(LIMIT_S) in (JobStatus.STOPPED, JobStatus.FAILED)
        with pytest.raises((CancelledError, WorkerLostError)):
            job.result()


def test_a_pending_call_can_be_stopped_alone(counter: ActorHandle[Counter], tmp_path: Path) -> None:
    first = counter.submit("through", tmp_path / "started", tmp_path / "gate")
    wait_for(tmp_path / "started")
    second, third = counter.submit("add", 100), counter.submit("add", 1)
    second.terminate()
    (tmp_path / "gate").touch()
    assert first.result(LIMIT_S) == "through"
    assert third.result(LIMIT_S) == 6
    assert second.wait(LIMIT_S) is JobStatus.STOPPED


@elsewhere
def test_a_lost_actor_is_made_anew(counter: ActorHandle[Counter]) -> None:
    assert counter.add(10) == 15
    pid = counter.pid()
    assert pid != os.getpid()
    with pytest.raises(WorkerLostError, match="counter"):
        counter.die()
    assert counter.add(1) == 6, "what it had kept is gone"
    assert counter.pid() != pid
    assert counter.restarts == 1


@elsewhere
def test_an_actor_that_is_lost_too_often_stays_lost(client: Client) -> None:
    counter = client.create_actor(ActorRequest("counter", Counter, losses=1))
    for _ in range(2):
        with pytest.raises(WorkerLostError, match="counter"):
            counter.die()
    with pytest.raises(WorkerLostError, match="counter"):
        counter.add(1)


@pytest.mark.parametrize("size", [1, 3])
def test_a_group_is_called_as_one(client: Client, size: int) -> None:
    with create_actor_group(client, ActorRequest("counter", partial(Counter, 5)), size) as group:
        assert len(group) == len(list(group)) == size
        assert group[0].add(1) == 6
        assert group.call("add", 1) == [7, *[6] * (size - 1)]
        assert [job.result(LIMIT_S) for job in group.submit("add", 0)] == [7, *[6] * (size - 1)]
        with pytest.raises(ValueError, match="not this time"):
            group.call("fail")


def test_a_group_shares_items_and_keeps_their_order(client: Client) -> None:
    with create_actor_group(client, ActorRequest("worker", Counter), 3) as group:
        results = list(group.map("echo", range(30)))
        assert [item for _, item in results] == list(range(30))
        assert list(group.map("echo", [])) == []


def test_an_actor_of_a_group_that_fails_is_heard_in_its_turn(client: Client) -> None:
    with create_actor_group(client, ActorRequest("worker", Counter), 2) as group:
        results = group.map("add", [1, "x", 2])
        assert next(results) == 1
        with pytest.raises(TypeError):
            next(results)


def test_make_may_be_any_function(client: Client) -> None:
    makes: list[Callable[[], object]] = [list, lambda: [1, 2]]
    assert [client.create_actor(ActorRequest("list", make)).count(1) for make in makes] == [0, 1]
