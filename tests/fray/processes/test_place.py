"""The slot of a job elsewhere: in any order of parking and waiting, none is lost and none is made."""

from __future__ import annotations

import random
import threading
from functools import partial

from treadle.fray.processes.place import Place
from treadle.fray.slots import Slots


def test_it_waits_its_turn_and_goes_on() -> None:
    slots, told, other_may_end = Slots(1), threading.Event(), threading.Event()
    place_parked, done = threading.Event(), threading.Event()

    def work() -> None:
        place = Place(slots, told.set)
        place.park()
        place_parked.set()
        other_began.wait()
        assert not place.unpark()
        other_may_end.set()
        assert told.wait(60)
        assert place.settle()
        assert not place.settle()
        place.end()
        done.set()

    other_began = threading.Event()

    def other() -> None:
        other_began.set()
        other_may_end.wait()

    slots.start(work)
    assert place_parked.wait(60)
    slots.start(other)
    assert done.wait(60)
    slots.close()


def wander(slots: Slots, draw: random.Random) -> None:
    """What a job may do with its place, in any order."""
    told = threading.Event()
    place = Place(slots, told.set)
    for _ in range(draw.randrange(12)):
        place.park()
        if draw.random() < 0.5:
            place.unpark()
            place.park()  # thought better of it, perhaps while it waited
        if not place.unpark():
            told.wait(60)
            place.settle()
        told.clear()
    if draw.random() < 0.3:
        place.park()
    place.end()


def test_slots_are_neither_lost_nor_made() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    slots, left = Slots(2), threading.Semaphore(0)

    def work(draw: random.Random) -> None:
        wander(slots, draw)
        left.release()

    for number in range(100):
        slots.start(partial(work, random.Random(seed + number)))
    for _ in range(100):
        assert left.acquire(timeout=60)
    check_count_of(slots)


def check_count_of(slots: Slots) -> None:
    """Two can work at once, and a third has to wait."""
    together, gate, third = threading.Barrier(3), threading.Event(), threading.Event()

    def meet() -> None:
        together.wait(60)
        gate.wait(60)

    for _ in range(2):
        slots.start(meet)
    together.wait(60)
    slots.start(third.set)
    assert not third.is_set()
    gate.set()
    assert third.wait(60)
    slots.close()
