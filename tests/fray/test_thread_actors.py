"""Actors on threads: what only holds in one process, and what groups do beyond one actor."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

import pytest

from treadle.errors import ArgumentError, UsageError
from treadle.fray import (
    ActorHandle,
    ActorRequest,
    JobStatus,
    ResourceConfig,
    ThreadClient,
    create_actor_group,
)


class Cell:
    def __init__(self) -> None:
        self.me: ActorHandle[Cell] | None = None

    def know(self, me: ActorHandle[Cell]) -> None:
        self.me = me

    def ask_myself(self) -> None:
        assert self.me is not None
        self.me.one()

    def tell_myself(self) -> Any:
        assert self.me is not None
        return self.me.submit("one")

    def one(self) -> int:
        return 1

    def wait(self, gate: threading.Event) -> None:
        gate.wait()

    def itself(self) -> Cell:
        return self

    def echo(self, item: int) -> int:
        return item


def test_a_call_that_would_wait_for_its_own_actor_is_refused() -> None:
    with ThreadClient(1) as client:
        cell = client.create_actor(ActorRequest("cell", Cell))
        cell.know(cell)
        with pytest.raises(UsageError, match="actor cell#1: a call of it would wait for 'one'"):
            cell.ask_myself()
        assert cell.tell_myself().result() == 1


def test_private_methods_cannot_be_called() -> None:
    with ThreadClient(1) as client:
        cell = client.create_actor(ActorRequest("cell", Cell))
        with pytest.raises(AttributeError, match="_hidden"):
            cell._hidden()
        assert repr(cell) == "<actor cell#1>"


def test_an_object_is_dropped_with_its_last_handle() -> None:
    dropped = threading.Event()
    with ThreadClient(1) as client:
        cell = client.create_actor(ActorRequest("cell", Cell))
        weakref.finalize(cell.itself(), dropped.set)
        assert cell.one() == 1
        assert not dropped.is_set()
        del cell
        while not dropped.wait(0.01):  # the thread of the last call lets go of it in a moment
            gc.collect()


def test_calls_are_refused_once_the_client_was_shut_down() -> None:
    client = ThreadClient(1)
    cell = client.create_actor(ActorRequest("cell", Cell))
    calls = [cell.submit("one") for _ in range(3)]
    client.shutdown()
    assert [call.status() for call in calls] == [JobStatus.SUCCEEDED] * 3
    with pytest.raises(ArgumentError, match="actor 'cell': the client was shut down"):
        cell.submit("one")


def test_stopped_calls_are_known_to_be_so_at_once_and_nobody_waits_for_them() -> None:
    gate = threading.Event()
    client = ThreadClient(1)
    cell = client.create_actor(ActorRequest("cell", Cell))
    running = cell.submit("wait", gate)
    pending = [cell.submit("one") for _ in range(3)]
    cell.terminate()
    assert [each.wait(20) for each in (*pending, cell.submit("one"))] == [JobStatus.STOPPED] * 4
    with pytest.raises(CancelledError):
        pending[0].result()
    gate.set()
    running.wait(20)
    client.shutdown()


def test_a_call_that_finds_no_thread_fails_and_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ThreadClient(2)
    cell = client.create_actor(ActorRequest("cell", Cell))
    assert cell.one() == 1
    monkeypatch.setattr(client._slots, "_idle", 0)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        call = cell.submit("one")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        call.result(20)
    assert cell.one() == 1


def test_the_members_of_a_group_that_cannot_be_completed_are_ended() -> None:
    made: list[ActorHandle[Cell]] = []

    class Full(ThreadClient):
        def create_actor(self, request: ActorRequest[Any]) -> ActorHandle[Any]:
            if len(made) == 2:
                raise ArgumentError("no room for a third")
            made.append(super().create_actor(request))
            return made[-1]

    with Full(1) as client:
        with pytest.raises(ArgumentError, match="no room"):
            create_actor_group(client, ActorRequest("cell", Cell), 3)
        assert [each.submit("one").wait(20) for each in made] == [JobStatus.STOPPED] * 2
        with pytest.raises(ArgumentError, match="count"):
            create_actor_group(client, ActorRequest("cell", Cell), 0)


def test_a_group_takes_items_as_they_are_needed() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            taken.append(number)
            yield number

    with ThreadClient(2) as client, create_actor_group(client, ActorRequest("cell", Cell), 2) as group:
        results = group.map("echo", items())
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        assert len(taken) <= 5 + 4 * 2 + 1


def test_a_request_that_can_never_be_met_is_remembered_as_little_as_one_that_can() -> None:
    with ThreadClient(1, resources=ResourceConfig(cpu=0.5)) as client:
        with pytest.raises(ArgumentError, match=r"actor 'cell' can never run here: cpu: 1 asked for"):
            client.create_actor(ActorRequest("cell", Cell))
        small = partial(ActorRequest, resources=ResourceConfig(cpu=0.25))
        assert client.create_actor(small("cell", Cell)).one() == 1
