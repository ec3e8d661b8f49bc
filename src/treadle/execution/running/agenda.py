"""What is to be done at a later time: retries, timeouts, a second look at a lease."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count

_LONGEST = 86_400.0  # no system waits for just any number of seconds


class Agenda:
    """Calls with their times, by a clock that only moves forward, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._entries)

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        """Call it that much later."""
        heapq.heappush(self._entries, (self._clock() + seconds, next(self._numbers), call))

    def seconds_left(self) -> float | None:
        """How long to wait for what is due next, a day at most; None when there is nothing."""
        if not self._entries:
            return None
        return min(max(0.0, self._entries[0][0] - self._clock()), _LONGEST)

    def call_due(self) -> None:
        """Make the calls whose time has come, in the order of their times."""
        now = self._clock()
        while self._entries and self._entries[0][0] <= now:
            heapq.heappop(self._entries)[2]()
