"""When a lease may be taken over: its owner showed no life for its time to live, is dead, or gave it up.

Life is a counter in the lease that the owner raises. Whoever waits measures with a clock of its own, from
the moment it first saw the counter as it is now; so the clocks of two machines need not agree.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from treadle.storage.ledger.process import is_gone
from treadle.storage.ledger.protocol import Owner


class Lease(NamedTuple):
    """A lease as it was read: `ttl` in seconds is what the owner promised, `beat` its counter."""

    token: str
    owner: Owner
    ttl: float
    beat: int


class Watcher:
    """What one process has seen of the leases of others. Safe for threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[str, int, float]] = {}
        self._given_up: set[str] = set()
        self._lock = threading.Lock()

    def is_stale(self, place: str, lease: Lease) -> bool:
        """Whether the lease of the place, just read, may be taken over."""
        if lease.token in self._given_up or is_gone(lease.owner):
            return True
        now = self._clock()
        with self._lock:
            token, beat, since = self._seen.get(place, ("", 0, now))
            if (token, beat) != (lease.token, lease.beat):
                since = now
                self._seen[place] = (lease.token, lease.beat, now)
        return now - since >= lease.ttl

    def give_up(self, token: str) -> None:
        """That claim of this process is over, though the ledger could not be told so."""
        self._given_up.add(token)

    def forget(self, place: str) -> None:
        """The place is ours, or free."""
        if self._seen:
            with self._lock:
                self._seen.pop(place, None)
