"""The ledger of a store on an object store, or on a disk that several machines share.

All it needs is that of two who make the same object, one succeeds. A build is such an object, and so is each
sign of life of a lease (see `leases.py`).
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from treadle.errors import LedgerError
from treadle.storage.ledger import names
from treadle.storage.ledger.beats import Beats
from treadle.storage.ledger.codec import sign_of_life
from treadle.storage.ledger.fork import reset_after_fork
from treadle.storage.ledger.heart import Heart, Kept
from treadle.storage.ledger.leases import LeasedShelf
from treadle.storage.ledger.messages import lease_lost, number_taken, unknown_end
from treadle.storage.ledger.process import this_owner
from treadle.storage.ledger.protocol import AttemptNote, Claim, Held
from treadle.storage.ledger.staleness import Watcher


@dataclass
class _Sign:
    """The last sign of life of a claim of this process, and what every one of them says."""

    content: bytes
    generation: int


class ObjectLedger(LeasedShelf):
    """See `Ledger`. `ttl` in seconds: without a sign of life for so long, a claim of this process is lost."""

    def __init__(self, url: str, ttl: float) -> None:
        self._ttl = ttl
        super().__init__(url)
        reset_after_fork(self)

    def _begin(self) -> None:
        super()._begin()
        self._hasty = self._bucket.hasty()
        self._heart = Heart(self._beat, self._ttl, grace=self._bucket.patience())
        self._beats = Beats(self._beat_one, self.url)
        self._watcher = Watcher(self._bucket.watch_time)
        self._session = secrets.token_hex(6)
        self._tokens = count(1)
        self._signs: dict[str, _Sign] = {}

    def claim(self, place: str, on_lost: Callable[[], None], run: str = "") -> Claim | Held:
        """See `Ledger`."""
        token = f"{self._session}-{next(self._tokens)}"
        content = sign_of_life(token, this_owner(run), self._ttl)
        # What the plan saw may be old; whether it was, `_advance` finds out.
        newest = self._free.pop(place, None)
        while True:
            began = self._heart.clock()
            if newest is None:
                seen, lease = self._look(place)
                if lease is not None and not self._watcher.is_stale(place, lease):
                    return Held(place, lease.owner)
                newest, generation = seen.newest, seen.generation + 1
            else:
                generation = 1
            claim = Claim(place, token, newest + 1)
            if self._taken(claim, generation, content):
                self._signs[token] = _Sign(content, generation)
                self._heart.keep(claim, on_lost, threading.Lock(), began)
                self._watcher.forget(place)
                return claim
            newest = None

    def commit(
        self, claim: Claim, head: str, body: str, note: AttemptNote, publish: Callable[[], None] | None
    ) -> None:
        """See `Ledger`."""
        seen = self._check_ours(claim)
        if publish is not None:
            if seen.standing is not None:
                self._put_mark("withdrawn", claim.place, seen.standing)
            publish()
        # Before the build is there, lest a beat in this moment takes it for another's.
        self._end(claim)
        try:
            is_committed = self._put_build(claim, head, body, note)
        except LedgerError as error:
            error.add_note(unknown_end(claim))
            raise
        if not is_committed:
            raise number_taken(self.url, claim)
        # It is committed. What is left may fail: the build has the note too, and these leases say nothing.
        tell = partial(self._put_attempt_of_build, claim, note)
        with contextlib.suppress(LedgerError):
            self._each(lambda act: act(), [tell, partial(self._clear, claim.place, seen, claim.number)])

    def release(self, claim: Claim, note: AttemptNote | None = None) -> None:
        """See `Ledger`."""
        self._end(claim)
        try:
            if note is not None:
                self.note([note])
            self._give_up_lease(claim)
        except BaseException:
            self._watcher.give_up(claim.token)
            raise

    def close(self) -> None:
        """See `Ledger`."""
        if not self._heart.busy():
            self._heart.close()
            self._readers.shutdown(wait=False)
            self._begin()

    def is_present(self) -> bool:
        """Always, as far as this ledger can tell."""
        return True

    def reset(self) -> None:
        """In a forked child: the claims and the heartbeat are the parent's."""
        self._begin()

    def _taken(self, claim: Claim, generation: int, content: bytes) -> bool:
        try:
            return self._advance(claim, generation, content, self._bucket)
        except BaseException:
            # The lease may be there, and nobody is behind it: this process at least need not wait for it.
            self._watcher.give_up(claim.token)
            raise

    def _check_ours(self, claim: Claim) -> names.Listing:
        seen, sign = self._listing(claim.place), self._signs.get(claim.token)
        if seen.newest >= claim.number:
            self._end(claim)
            raise number_taken(self.url, claim)
        if sign is not None and sign.generation == seen.generation:
            return seen
        seen, lease = self._look(claim.place)
        if lease is None or lease.token != claim.token:
            self._end(claim)
            raise lease_lost(self.url, claim, None if lease is None else lease.owner)
        return seen

    def _end(self, claim: Claim) -> None:
        kept = self._heart.find(claim)
        if kept is not None:
            with kept.lock:
                self._heart.end(claim)
        self._signs.pop(claim.token, None)

    def _beat(self, kept: Sequence[Kept]) -> None:
        self._beats.make(kept, self._heart.interval)

    def _beat_one(self, kept: Kept) -> None:
        sign = self._signs.get(kept.claim.token)
        if sign is None:
            return
        began, generation = self._heart.clock(), sign.generation + 1
        is_ours = self._advance(kept.claim, generation, sign.content, self._hasty)
        with kept.lock:
            if kept.ended:
                return
            if is_ours:
                sign.generation = generation
                kept.confirm(began)
            else:
                kept.lose()
