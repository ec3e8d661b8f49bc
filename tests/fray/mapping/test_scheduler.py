"""The state of a map without threads, clocks and workers: whatever happens, each unit once, and in order."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.fray.mapping.batch import Batch, Outcome
from treadle.fray.mapping.pace import Pace
from treadle.fray.mapping.queues import LaneQueues, SharedQueue, deal
from treadle.fray.mapping.reorder import ReorderBuffer
from treadle.fray.mapping.scheduler import Scheduler

KILLS = 2


@dataclass
class World:
    """What units do, and what has been seen of them."""

    count: int
    lanes: int
    raises: set[int]
    kills: set[int]
    keep_going: bool
    dealt: bool
    chance: Random
    order: ReorderBuffer = field(default_factory=ReorderBuffer)
    given: list[Any] = field(default_factory=list)
    alone_when_killed: Counter[int] = field(default_factory=Counter)
    poisoned: set[int] = field(default_factory=set)
    pulled: int = 0
    running: list[Batch] = field(default_factory=list)
    error_known_at: float = float("inf")

    def __post_init__(self) -> None:
        self.pace = Pace(self.lanes)
        self.queue: SharedQueue | LaneQueues = (
            deal(range(self.count), self.lanes) if self.dealt else SharedQueue()
        )
        self.scheduler = Scheduler(self.queue, self.lanes, KILLS, self.pace, keep_going=self.keep_going)

    def pull(self) -> None:
        if isinstance(self.queue, SharedQueue):
            room = min(self.scheduler.room(self.pulled), self.count - self.pulled)
            room = self.chance.randint(1, room) if room else 0
            self.queue.add(list(range(self.pulled, self.pulled + room)))
            self.pulled += room

    def start(self) -> None:
        while (batch := self.scheduler.take()) is not None:
            window = self.order.next + self.pace.window()
            assert all(number < min(window, self.error_known_at) for number in batch.units.numbers)
            assert list(batch.units.numbers) == list(batch.units.values)
            assert batch.lane not in [each.lane for each in self.running]
            self.running.append(batch)
        assert len(self.running) <= self.lanes
        assert self.scheduler.running == sum(len(each.units) for each in self.running)

    def end_one(self) -> None:
        batch = self.running.pop(self.chance.randrange(len(self.running)))
        if self.kills.intersection(batch.units.values):
            self._lose(batch)
        elif self.chance.random() < 0.1:  # a worker dies of something else
            self._lose_by_accident(batch)
        else:
            self._come_back(batch)

    def _lose(self, batch: Batch) -> None:
        number = batch.units.numbers[0]
        if len(batch.units) == 1:
            self.alone_when_killed[number] += 1
        if self.scheduler.lose(batch):
            self._poison(number)

    def _lose_by_accident(self, batch: Batch) -> None:
        number = batch.units.numbers[0]
        if len(batch.units) == 1 and self.alone_when_killed[number] + 1 >= KILLS:
            self._come_back(batch)  # no two accidents of one unit: it would look like poison
        else:
            self._lose(batch)

    def _poison(self, number: int) -> None:
        self.poisoned.add(number)
        self._put_error(number, "poison")

    def _come_back(self, batch: Batch) -> None:
        done = self.chance.randint(1, len(batch.units))
        bad = [place for place in range(done) if batch.units.values[place] in self.raises]
        if bad and not self.keep_going:
            done, bad = bad[0] + 1, bad[:1]
        seconds = self.chance.choice([0.0, 1e-6, 1e-3, 0.1])
        self.scheduler.came_back(batch, Outcome(done, bad, seconds, size=done * 10))
        for place in range(done):
            number = batch.units.numbers[place]
            if place in bad:
                self._put_error(number, "error")
            else:
                self.order.put([number], [number])

    def _put_error(self, number: int, kind: str) -> None:
        if self.keep_going:
            self.order.put([number], [(kind, number)])
        else:
            self.error_known_at = min(self.error_known_at, number)
            self.order.put_error(number, RuntimeError(kind))

    def fetch(self) -> None:
        self.given += self.order.ready(self.chance.randint(1, 40))
        self.scheduler.fetched(self.order.next)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_each_unit_comes_exactly_once_and_in_order(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 150), "units")
    some = st.sets(st.integers(0, max(0, count - 1)), max_size=3)
    world = World(
        count,
        data.draw(st.integers(1, 4), "lanes"),
        data.draw(some, "raising"),
        data.draw(some, "killing"),
        data.draw(st.booleans(), "keep going"),
        data.draw(st.booleans(), "dealt"),
        Random(data.draw(st.integers(0, 2**32), "seed")),
    )
    idle = 0
    while world.order.next < count and world.order.error() is None:
        world.pull()
        world.start()
        if world.running:
            world.end_one()
        before = len(world.given)
        world.fetch()
        idle = 0 if world.running or len(world.given) > before else idle + 1
        assert idle < 200, "nothing runs and nothing comes any more"
    _check(world)


def _check(world: World) -> None:
    bad = world.raises | world.kills
    kind = {number: "poison" if number in world.kills else "error" for number in bad}
    expected: list[Any] = [(kind[n], n) if n in bad else n for n in range(world.count)]
    if not world.keep_going:
        expected = expected[: min((n for n in bad if n < world.count), default=world.count)]
    assert world.given == expected
    assert world.poisoned <= world.kills
    assert all(world.alone_when_killed[number] == KILLS for number in world.poisoned)
    if world.keep_going and world.count:
        assert world.poisoned == {number for number in world.kills if number < world.count}
        assert world.scheduler.done + world.scheduler.failed == world.count


@pytest.mark.parametrize("kills", [1, 2, 5])
def test_a_unit_is_poisoned_after_so_many_kills_alone(kills: int) -> None:
    queue = SharedQueue()
    scheduler = Scheduler(queue, 1, kills, Pace(1), keep_going=True)
    queue.add(["only"])
    for _ in range(kills - 1):
        batch = scheduler.take()
        assert batch is not None
        assert not scheduler.lose(batch)
    batch = scheduler.take()
    assert batch is not None
    assert scheduler.lose(batch)
    assert scheduler.take() is None
    assert scheduler.lost == kills


def test_a_lost_batch_runs_again_unit_by_unit_before_all_others() -> None:
    queue = SharedQueue()
    scheduler = Scheduler(queue, 1, 3, Pace(1), keep_going=False)
    queue.add(list(range(100)))
    first = scheduler.take()
    assert first is not None
    scheduler.came_back(first, Outcome(1, (), 1e-6))
    batch = scheduler.take()
    assert batch is not None
    assert len(batch.units) > 1
    assert not scheduler.lose(batch)
    for number in batch.units.numbers:
        alone = scheduler.take()
        assert alone is not None
        assert list(alone.units.numbers) == [number]
        scheduler.came_back(alone, Outcome(1, (), 1e-6))
    fresh = scheduler.take()
    assert fresh is not None
    assert fresh.units.numbers[0] == batch.units.numbers[-1] + 1


def test_batches_grow_for_short_units_and_stay_single_for_long_ones() -> None:
    short, long = Pace(2), Pace(2)
    for _ in range(8):
        short.learn(short.size, short.size * 1e-7, 0)
        long.learn(1, 1.0, 0)
    assert short.size > 1000
    assert short.next_size(100_000) == short.size
    assert long.size == long.next_size(1000) == 1


def test_large_units_are_few_in_a_batch_and_little_is_fetched_ahead() -> None:
    pace = Pace(2)
    for _ in range(8):
        pace.learn(pace.size, pace.size * 1e-6, pace.size * (8 << 20))
    assert pace.size == 1
    assert pace.window() <= 8


def test_the_last_batches_are_small_enough_for_all_lanes() -> None:
    pace = Pace(4)
    for _ in range(8):
        pace.learn(pace.size, pace.size * 1e-3, 0)
    assert pace.size == 30
    assert pace.next_size(8) <= 2


def test_units_are_dealt_out_in_turn_or_by_weight() -> None:
    def hands(queues: LaneQueues) -> list[list[int]]:
        return [list((queues.take(lane, 9, 99) or pytest.fail("none")).numbers) for lane in range(2)]

    assert hands(deal([5, 1, 1, 1], 2)) == [[0, 2], [1, 3]]
    assert hands(deal([5, 1, 1, 1], 2, float)) == [[0], [1, 2, 3]]
