"""Times in which a storage cannot be reached, and how they are ridden out.

An outage begins with the first request that fails and ends with the first that succeeds, of whatever thread.
Whoever meets one tries again, with pauses that grow and vary, until it has lasted for `patience` seconds;
from then on each request is tried once, so that a run ends soon instead of waiting for each thing anew.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from treadle.storage.passing import is_passing

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class Outage:
    """What this process knows of whether one storage can be reached. Safe for threads."""

    def __init__(
        self,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.patience = patience
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._since: float | None = None  # when the first request began that failed
        self._noticed = 0.0  # when that was known
        self._before = 0.0  # seconds of the outages that are over

    def ride_out(self, act: Callable[[], T], *, patient: bool = True) -> T:
        """What `act` gives, which may be called several times; once if not `patient`. What it raises last."""
        first: float | None = None
        tries = 0
        while True:
            began = self._clock()
            try:
                found = act()
            except Exception as error:
                if not is_passing(error):
                    raise
                noticed = self._failed(began)
                now = self._clock()
                first = now if first is None else first
                if not patient or now - min(first, noticed) >= self.patience:
                    raise
            else:
                self._reached()
                return found
            self._pause(_pause_before(tries))
            tries += 1

    def lasted(self) -> float:
        """Seconds since the outage began that is going on; 0 when there is none."""
        since = self._since
        return 0.0 if since is None else self._clock() - since

    def watch_time(self) -> float:
        """A clock in seconds that stands still in an outage, in which nothing can be seen of anybody."""
        with self._lock:
            now = self._clock()
            return now - self._before - (0.0 if self._since is None else now - self._since)

    def _failed(self, began: float) -> float:
        with self._lock:
            if self._since is None:
                self._since, self._noticed = began, self._clock()
            return self._noticed

    def _reached(self) -> None:
        if self._since is None:  # without the lock, for speed; below it is looked at again
            return
        with self._lock:
            if self._since is not None:
                self._before += self._clock() - self._since
                self._since = None


def _pause_before(tries: int) -> float:
    longest = min(_FIRST_PAUSE * 2.0 ** min(tries, 16), _LONGEST_PAUSE)
    return random.uniform(longest / 2, longest)  # noqa: S311 - spreads retries; nothing is secret
