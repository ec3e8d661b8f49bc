"""When a lease counts as stale, by a clock that the test moves; which process is gone."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from treadle.storage.ledger import Owner
from treadle.storage.ledger.process import is_gone, this_owner
from treadle.storage.ledger.staleness import Lease, Watcher

FAR = Owner("r", "far", 7, "2030-01-01T00:00:00+00:00", "", 1)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watcher(clock: Clock) -> Watcher:
    return Watcher(clock)


def test_a_lease_is_stale_when_its_counter_rests_for_the_life_its_owner_promised(
    watcher: Watcher, clock: Clock
) -> None:
    """Neither the clock of the owner nor the own time of day has a part in it."""
    lease = Lease("t", FAR, 30.0, 5)
    assert not watcher.is_stale("a", lease)
    clock.now += 29.9
    assert not watcher.is_stale("a", lease)
    clock.now += 0.1
    assert watcher.is_stale("a", lease)


@pytest.mark.parametrize("moved", [{"beat": 6}, {"token": "other"}])
def test_every_move_begins_a_new_life(watcher: Watcher, clock: Clock, moved: dict[str, Any]) -> None:
    lease = Lease("t", FAR, 30.0, 5)
    watcher.is_stale("a", lease)
    clock.now += 29
    lease = lease._replace(**moved)
    assert not watcher.is_stale("a", lease)
    clock.now += 29
    assert not watcher.is_stale("a", lease)
    clock.now += 1
    assert watcher.is_stale("a", lease)


def test_places_are_watched_apart_and_forgotten(watcher: Watcher, clock: Clock) -> None:
    lease = Lease("t", FAR, 30.0, 5)
    watcher.is_stale("a", lease)
    clock.now += 30
    assert not watcher.is_stale("b", lease)
    watcher.forget("a")
    assert not watcher.is_stale("a", lease)


def test_a_dead_process_of_this_machine_needs_no_waiting(watcher: Watcher) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    assert watcher.is_stale("a", Lease("t", replace(this_owner(""), pid=process.pid), 1800.0, 0))


def test_an_ended_process_that_nobody_waited_for_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = replace(this_owner(""), pid=process.pid, process_started=0)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(owner)


def test_this_process_is_not_gone_and_its_predecessor_with_the_same_number_is() -> None:
    me = this_owner("r")
    assert not is_gone(me)
    assert is_gone(replace(me, process_started=me.process_started - 1))


@pytest.mark.parametrize("machine", ["", "another boot"])
def test_a_process_elsewhere_is_never_known_to_be_gone(machine: str) -> None:
    assert not is_gone(replace(this_owner("r"), machine=machine, pid=2**22 + 1))
