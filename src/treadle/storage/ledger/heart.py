"""The heartbeat of a ledger: one thread that keeps every claim of this process alive.

A claim ends once: committed or released by its owner, or lost. Both are decided under the lock of the
claim, so a claim that ends well is never reported lost a moment later.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias
from weakref import WeakSet

from treadle.errors import ArtifactError
from treadle.storage.ledger.protocol import Claim

_BEATS_PER_LIFE = 3
_TRIES_PER_LIFE = 30
_LONGEST_WAIT_BEFORE_A_NEW_TRY = 1.0
_IDLE_ROUNDS = 2

_HEARTS: WeakSet[Heart] = WeakSet()

Lock: TypeAlias = AbstractContextManager[object]


class Kept:
    """A claim that is kept alive. Whoever reads or changes its state holds its lock."""

    __slots__ = ("claim", "confirmed", "ended", "lock", "lost", "on_lost")

    def __init__(self, claim: Claim, on_lost: Callable[[], None], lock: Lock, confirmed: float) -> None:
        self.claim = claim
        self.on_lost = on_lost
        self.lock = lock
        self.confirmed = confirmed  # when the last beat began that is known to have succeeded
        self.ended = False
        self.lost = False

    def confirm(self, began: float) -> None:
        """A beat that began then has succeeded."""
        self.confirmed = began

    def lose(self) -> None:
        """The lease is another's."""
        self.ended = self.lost = True


Beat: TypeAlias = Callable[[Sequence[Kept]], None]
"""Raise the counters of these claims, but for those that have ended; `confirm` or `lose` each.

Raises LedgerError when that failed for some; those are tried again.
"""


class Heart:
    """The claims of this process in one ledger. `ttl` is the time to live, in seconds, without a beat.

    For `grace` seconds more a claim is kept whose beats fail without one that finds it another's: while
    the ledger is out of reach, perhaps nobody could take it over, and a commit will tell.
    """

    def __init__(
        self, beat: Beat, ttl: float, clock: Callable[[], float] = time.monotonic, grace: float = 0.0
    ) -> None:
        self.ttl = ttl
        self._grace = grace
        self.clock = clock
        self._beat = beat
        self._kept: dict[str, Kept] = {}
        self._life = threading.Condition()
        self._thread: threading.Thread | None = None
        _HEARTS.add(self)

    @property
    def interval(self) -> float:
        """Seconds from one beat to the next."""
        return self.ttl / _BEATS_PER_LIFE

    def keep(self, claim: Claim, on_lost: Callable[[], None], lock: Lock, since: float) -> Kept:
        """From now on keep the claim alive; `since` is when its lease began to be taken."""
        kept = self._kept[claim.token] = Kept(claim, on_lost, lock, since)
        # Without a lock, for speed; `_start` looks again.
        if self._thread is None:
            self._start()
        return kept

    def find(self, claim: Claim) -> Kept | None:
        """The claim, if it is still kept here."""
        return self._kept.get(claim.token)

    def end(self, claim: Claim) -> None:
        """The claim is over, its owner says so. To be called under the lock of the claim."""
        kept = self._kept.pop(claim.token, None)
        if kept is not None:
            kept.ended = True

    def busy(self) -> bool:
        """Whether any claim is kept."""
        return bool(self._kept)

    def stop(self) -> threading.Thread | None:
        """Tell the thread to end. Claims are left to run out."""
        with self._life:
            thread, self._thread = self._thread, None
            self._life.notify_all()
        return thread

    def close(self) -> None:
        """End the thread, and wait for it. Claims are left to run out."""
        thread = self.stop()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def tick(self) -> bool:
        """One round of beats; False when some must be tried again soon."""
        kept = list(self._kept.values())
        try:
            self._beat(kept)
            whole = True
        except ArtifactError:
            self._expire(kept)
            whole = False
        for each in kept:
            self._tell(each)
        return whole

    def _expire(self, kept: Sequence[Kept]) -> None:
        for each in kept:
            with each.lock:
                if not each.ended and self.clock() - each.confirmed >= self.ttl + self._grace:
                    each.lose()

    def _tell(self, kept: Kept) -> None:
        if not kept.lost or self._kept.pop(kept.claim.token, None) is None:
            return
        try:
            kept.on_lost()
        except Exception:  # noqa: BLE001 - reported; the other claims still need their beats
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _start(self) -> None:
        with self._life:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="treadle heartbeat", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        me = threading.current_thread()
        idle, pause = 0, self.interval
        while self._rest(me, pause):
            idle = 0 if self._kept else idle + 1
            began = self.clock()
            pause = self._pause(whole=self.tick(), began=began)
            if idle >= _IDLE_ROUNDS:
                self._retire(me)

    def _rest(self, me: threading.Thread, pause: float) -> bool:
        """Wait; whether the thread still has a heart to serve."""
        with self._life:
            if self._thread is me:
                self._life.wait(pause)
            return self._thread is me

    def _retire(self, me: threading.Thread) -> None:
        """End the thread unless a claim has come."""
        with self._life:
            if self._thread is me:
                # First this, then the look: `keep` does the two in the other order, so one of them sees.
                self._thread = None
                if self._kept:
                    self._thread = me

    def _pause(self, *, whole: bool, began: float) -> float:
        if not whole:
            return min(self.ttl / _TRIES_PER_LIFE, _LONGEST_WAIT_BEFORE_A_NEW_TRY)
        return max(0.0, began + self.interval - self.clock())


@atexit.register
def _stop_all() -> None:
    # A beat needs threads of its own, which cannot be started any more when Python comes down.
    for each in tuple(_HEARTS):
        each.stop()
