"""The units that wait: for whichever lane is free, or dealt out to the lanes beforehand.

What was taken and came back is given out again first.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from treadle.fray.mapping.batch import Run


class Supply(Protocol):
    """Where units wait."""

    @property
    def waiting(self) -> int:
        """How many do."""
        ...

    def take(self, lane: int, size: int, below: float) -> Run | None:
        """The next units for the lane, at most `size`, with numbers below `below`; None if there are none."""
        ...

    def give_back(self, lane: int, run: Run) -> None:
        """The lane had taken them, and has not done them."""
        ...


class Returned:
    """Units that came back; the lowest numbers first, and suspects one by one."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, Run]] = []
        self.waiting = 0

    def put(self, run: Run) -> None:
        """They wait again."""
        if len(run):
            heapq.heappush(self._runs, (run.numbers[0], run))
            self.waiting += len(run)

    def take(self, size: int, below: float) -> Run | None:
        """As in `Supply`."""
        if not self._runs or self._runs[0][0] >= below:
            return None
        run = heapq.heappop(self._runs)[1]
        most = 1 if run.alone else min(size, bisect_left(run.numbers, below))
        self.waiting -= len(run)
        self.put(run[most:])
        return run[:most]


class Shared:
    """Whoever is free takes the next ones. Units are added in the order of their numbers, from 0."""

    def __init__(self) -> None:
        self._fresh: deque[list[Any]] = deque()  # as they were added: slices are cheaper than single units
        self._first = 0
        self._last = 0
        self._returned = Returned()

    @property
    def waiting(self) -> int:
        """See `Supply`."""
        return self._last - self._first + self._returned.waiting

    def add(self, units: list[Any]) -> None:
        """They wait behind the others."""
        if units:
            self._fresh.append(units)
            self._last += len(units)

    def take(self, lane: int, size: int, below: float) -> Run | None:  # noqa: ARG002 - all lanes are alike
        """See `Supply`."""
        if (run := self._returned.take(size, below)) is not None:
            return run
        size = int(min(size, self._last - self._first, below - self._first))
        if size <= 0:
            return None
        first, self._first = self._first, self._first + size
        return Run(range(first, self._first), self._next(size))

    def give_back(self, lane: int, run: Run) -> None:  # noqa: ARG002 - any lane may take it now
        """See `Supply`."""
        self._returned.put(run)

    def _next(self, size: int) -> list[Any]:
        found: list[Any] = []
        while (missing := size - len(found)) > 0:
            added = self._fresh.popleft()
            found += added[:missing]
            if len(added) > missing:
                self._fresh.appendleft(added[missing:])
        return found


class Dealt:
    """Each lane has its own units, `hands[lane]`, and works through them in order; none are added."""

    def __init__(self, hands: Sequence[Run]) -> None:
        self._hands = list(hands)
        self._taken = [0] * len(hands)
        self._returned = [Returned() for _ in hands]
        self.waiting = sum(map(len, hands))

    def take(self, lane: int, size: int, below: float) -> Run | None:
        """See `Supply`."""
        run = self._returned[lane].take(size, below) or self._next(lane, size, below)
        self.waiting -= len(run or ())
        return run

    def give_back(self, lane: int, run: Run) -> None:
        """See `Supply`."""
        self._returned[lane].put(run)
        self.waiting += len(run)

    def _next(self, lane: int, size: int, below: float) -> Run | None:
        hand, at = self._hands[lane], self._taken[lane]
        end = min(at + size, bisect_left(hand.numbers, below))
        if end <= at:
            return None
        self._taken[lane] = end
        return hand[at:end]


def deal(units: Sequence[Any], lanes: int, weigh: Callable[[Any], float] | None = None) -> Dealt:
    """Round robin; with `weigh` the heaviest first, each to the lane that has least by then."""
    numbers = _round_robin(units, lanes) if weigh is None else _balanced(list(map(weigh, units)), lanes)
    return Dealt([Run(mine, [units[number] for number in mine]) for mine in numbers])


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
