"""The units that wait: for whichever lane is free, or dealt out to the lanes beforehand.

What was taken and came back is given out again first.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from treadle.fray.mapping.batch import Units


class UnitQueue(Protocol):
    """Where units wait for a lane."""

    @property
    def waiting(self) -> int:
        """How many do."""
        ...

    def take(self, lane: int, size: int, below: float) -> Units | None:
        """The next units for the lane, at most `size`, with numbers below `below`; None if there are none."""
        ...

    def give_back(self, lane: int, units: Units) -> None:
        """The lane had taken them, and has not done them."""
        ...


class Requeued:
    """Units that came back; the lowest numbers first, and suspects one by one."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, Units]] = []
        self.waiting = 0

    def put(self, units: Units) -> None:
        """They wait again."""
        if len(units):
            heapq.heappush(self._heap, (units.numbers[0], units))
            self.waiting += len(units)

    def take(self, size: int, below: float) -> Units | None:
        """As in `UnitQueue`."""
        if not self._heap or self._heap[0][0] >= below:
            return None
        units = heapq.heappop(self._heap)[1]
        most = 1 if units.alone else min(size, bisect_left(units.numbers, below))
        self.waiting -= len(units)
        self.put(units[most:])
        return units[:most]


class SharedQueue:
    """Whoever is free takes the next ones. Units are added in the order of their numbers, from 0."""

    def __init__(self) -> None:
        self._fresh: deque[list[Any]] = deque()  # as they were added: slices are cheaper than single units
        self._first = 0
        self._last = 0
        self._requeued = Requeued()

    @property
    def waiting(self) -> int:
        """See `UnitQueue`."""
        return self._last - self._first + self._requeued.waiting

    def add(self, units: list[Any]) -> None:
        """They wait behind the others."""
        if units:
            self._fresh.append(units)
            self._last += len(units)

    def take(self, lane: int, size: int, below: float) -> Units | None:  # noqa: ARG002 - all lanes are alike
        """See `UnitQueue`."""
        if (again := self._requeued.take(size, below)) is not None:
            return again
        size = int(min(size, self._last - self._first, below - self._first))
        if size <= 0:
            return None
        first, self._first = self._first, self._first + size
        return Units(range(first, self._first), self._next(size))

    def give_back(self, lane: int, units: Units) -> None:  # noqa: ARG002 - any lane may take it now
        """See `UnitQueue`."""
        self._requeued.put(units)

    def _next(self, size: int) -> list[Any]:
        found: list[Any] = []
        while (missing := size - len(found)) > 0:
            added = self._fresh.popleft()
            found += added[:missing]
            if len(added) > missing:
                self._fresh.appendleft(added[missing:])
        return found


class LaneQueues:
    """Each lane has its own units, `hands[lane]`, and works through them in order; none are added."""

    def __init__(self, hands: Sequence[Units]) -> None:
        self._hands = list(hands)
        self._taken = [0] * len(hands)
        self._requeued = [Requeued() for _ in hands]
        self.waiting = sum(map(len, hands))

    def take(self, lane: int, size: int, below: float) -> Units | None:
        """See `UnitQueue`."""
        units = self._requeued[lane].take(size, below) or self._next(lane, size, below)
        self.waiting -= len(units or ())
        return units

    def give_back(self, lane: int, units: Units) -> None:
        """See `UnitQueue`."""
        self._requeued[lane].put(units)
        self.waiting += len(units)

    def _next(self, lane: int, size: int, below: float) -> Units | None:
        hand, at = self._hands[lane], self._taken[lane]
        end = min(at + size, bisect_left(hand.numbers, below))
        if end <= at:
            return None
        self._taken[lane] = end
        return hand[at:end]


def deal(units: Sequence[Any], lanes: int, weigh: Callable[[Any], float] | None = None) -> LaneQueues:
    """Round robin; with `weigh` the heaviest first, each to the lane that has least by then."""
    numbers = _round_robin(units, lanes) if weigh is None else _balanced(list(map(weigh, units)), lanes)
    return LaneQueues([Units(mine, [units[number] for number in mine]) for mine in numbers])


def _round_robin(units: Sequence[Any], lanes: int) -> list[Sequence[int]]:
    return [range(lane, len(units), lanes) for lane in range(lanes)]


def _balanced(weights: Sequence[float], lanes: int) -> list[Sequence[int]]:
    loads = [(0.0, lane) for lane in range(lanes)]
    hands: list[list[int]] = [[] for _ in range(lanes)]
    for number in sorted(range(len(weights)), key=lambda each: (-weights[each], each)):
        load, lane = loads[0]
        heapq.heapreplace(loads, (load + weights[number], lane))
        hands[lane].append(number)
    return [sorted(hand) for hand in hands]
