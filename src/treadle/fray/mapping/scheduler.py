"""Which units run next, and what becomes of those that come back: no threads, no clocks, no workers.

A unit waits, is taken with others as a batch, and then is done, raised an error, or was lost. Of a batch that
lost its worker all units are suspects: they run again, each alone. One that loses its worker then has a kill
on its account, and with `kills` of them it is poisoned.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter

from treadle.fray.mapping.batch import Batch, Outcome, Units
from treadle.fray.mapping.pace import Pace
from treadle.fray.mapping.queues import UnitQueue


class Scheduler:
    """Of a map over `lanes` lanes. Not safe for use by several threads.

    With `keep_going` an error of a unit keeps nothing from being started.
    """

    def __init__(self, queue: UnitQueue, lanes: int, kills: int, pace: Pace, *, keep_going: bool) -> None:
        self._queue = queue
        self.kills = kills
        self._pace = pace
        self._keep_going = keep_going
        self._free = list(range(lanes))
        self._killed: Counter[int] = Counter()
        self._fetched = 0
        self._below: float = math.inf
        self.done = 0
        self.failed = 0
        self.running = 0
        self.lost = 0

    @property
    def size(self) -> int:
        """Units of a batch, as things stand."""
        return self._pace.size

    @property
    def broken(self) -> bool:
        """Whether an error is known that ends the map."""
        return self._below < math.inf

    def fetched(self, number: int) -> None:
        """The results of all units before that one are with the consumer."""
        self._fetched = number

    def room(self, added: int) -> int:
        """How many more units may be added now, when `added` have been."""
        if self.broken:
            return 0
        free = self._fetched + self._pace.window() - added
        return max(0, min(free, self._pace.wanted(self._queue.waiting)))

    def take(self) -> Batch | None:
        """The next batch, for a lane that has none; None when there is nothing to start now."""
        size = self._pace.next_size(self._queue.waiting)
        below = min(self._below, self._fetched + self._pace.window())
        for lane in sorted(self._free):
            if (units := self._queue.take(lane, size, below)) is not None:
                self._free.remove(lane)
                self.running += len(units)
                return Batch(lane, units)
        return None

    def came_back(self, batch: Batch, outcome: Outcome) -> None:
        """What is done is done; what is not waits again."""
        self._end(batch, batch.units[outcome.done :])
        self.done += outcome.done - len(outcome.failed)
        self.failed += len(outcome.failed)
        if outcome.done:
            self._pace.learn(outcome.done, outcome.seconds, outcome.size)
        if outcome.failed and not self._keep_going:
            self.stop_at(batch.units.numbers[outcome.failed[0]])
        elif outcome.ends:
            self.stop_at(batch.units.numbers[outcome.failed[-1]])

    def not_run(self, batch: Batch) -> None:
        """It was not run, for a reason that lies with none of its units; they wait again."""
        self._end(batch, batch.units)

    def split(self, batch: Batch) -> None:
        """Its units have to run one by one."""
        self._end(batch, Units(batch.units.numbers, batch.units.values, alone=True))

    def refused(self, batch: Batch, place: int) -> None:
        """Its unit at that place cannot be run at all; the others wait again."""
        units = batch.units
        self._end(batch, units[:place])
        self._queue.give_back(batch.lane, units[place + 1 :])
        self._fail(units.numbers[place])

    def lose(self, batch: Batch) -> bool:
        """Its worker was lost; whether its only unit is poisoned by now."""
        self.lost += 1
        number = batch.units.numbers[0]
        if len(batch.units) == 1:
            self._killed[number] += 1
        if self._killed[number] < self.kills:
            self.split(batch)
            return False
        self._end(batch, batch.units[1:])
        self._fail(number)
        return True

    def abort(self, batch: Batch) -> None:
        """It ended in a way that ends the map."""
        self._end(batch, batch.units[:0])
        self.stop_at(batch.units.numbers[0])

    def stop_at(self, number: int) -> None:
        """Start no unit from that one on."""
        self._below = min(self._below, number)

    def _fail(self, number: int) -> None:
        self.failed += 1
        if not self._keep_going:
            self.stop_at(number)

    def _end(self, batch: Batch, rest: Units) -> None:
        self.running -= len(batch.units)
        heapq.heappush(self._free, batch.lane)
        self._queue.give_back(batch.lane, rest)
