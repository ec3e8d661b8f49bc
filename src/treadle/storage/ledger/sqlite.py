"""The ledger of a store on a local disk: one SQLite file, `{prefix}/.treadle/ledger.db`.

A claim and a commit are one transaction each. A process that dies in between leaves its lease, which
the next one takes over at once; one that is paused inside a commit holds the write lock, so nobody else
can commit meanwhile.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from treadle.storage.ledger import schema
from treadle.storage.ledger.codec import Row, body_sum, head_sum, note_row, owner_from_json, owner_to_json
from treadle.storage.ledger.fork import reset_after_fork
from treadle.storage.ledger.heart import Heart, Kept
from treadle.storage.ledger.history import SqliteHistory
from treadle.storage.ledger.messages import lease_lost, number_taken
from treadle.storage.ledger.process import this_owner
from treadle.storage.ledger.protocol import AttemptNote, Claim, Held, Owner
from treadle.storage.ledger.staleness import Lease, Watcher


class _Mine(NamedTuple):
    """The row of a lease that this process would have."""

    place: str
    token: str
    owner: str
    ttl: float


class SqliteLedger(SqliteHistory):
    """See `Ledger`. `ttl` in seconds: without a sign of life for so long, a claim of this process is lost."""

    def __init__(self, path: str, ttl: float) -> None:
        super().__init__(path)
        self._ttl = ttl
        self._begin()
        reset_after_fork(self)

    def _begin(self) -> None:
        self._heart = Heart(self._beat, self._ttl)
        self._watcher = Watcher()
        self._session = secrets.token_hex(6)
        self._tokens = count(1)

    def claim(self, place: str, on_lost: Callable[[], None], run: str = "") -> Claim | Held:
        """See `Ledger`."""
        token = f"{self._session}-{next(self._tokens)}"
        mine = _Mine(place, token, owner_to_json(this_owner(run)), self._ttl)
        with self._base as connection:
            began = self._heart.clock()
            rows = connection.execute(schema.CLAIM, mine).fetchall() or self._take_over(connection, mine)
            if isinstance(rows, Held):
                return rows
            claim = Claim(place, token, rows[0][0] + 1)
            self._heart.keep(claim, on_lost, self._base.lock, began)
        self._watcher.forget(place)
        return claim

    def commit(
        self, claim: Claim, head: str, body: str, note: AttemptNote, publish: Callable[[], None] | None
    ) -> None:
        """See `Ledger`."""
        build = _build_row(claim, head, body)
        with self._base as connection:
            if publish is not None and claim.number > 1:
                _withdraw_former(connection, claim)
            connection.execute("BEGIN IMMEDIATE")
            self._end_lease(connection, claim)
            if publish is not None:
                self._check_free(connection, claim)
                publish()
            self._insert(connection, claim, build)
            connection.execute(schema.INSERT_ATTEMPT, note_row(note))
            connection.execute("COMMIT")
            self._heart.end(claim)

    def release(self, claim: Claim, note: AttemptNote | None = None) -> None:
        """See `Ledger`."""
        with self._base.lock:
            self._heart.end(claim)
        try:
            self._write_release(claim, note)
        except BaseException:
            self._watcher.give_up(claim.token)
            raise

    def owners(self, places: Iterable[str]) -> dict[str, Owner]:
        """See `Ledger`."""
        return {place: owner_from_json(owner) for place, owner in self._read_in_parts(schema.OWNERS, places)}

    def leases(self) -> Iterator[tuple[str, Owner]]:
        """See `Ledger`."""
        return ((place, owner_from_json(owner)) for place, owner in self._base.read(schema.LEASES, ()))

    def close(self) -> None:
        """See `Ledger`."""
        if not self._heart.busy():
            self._heart.close()
            self._base.close()

    def is_present(self) -> bool:
        """Whether the store is there still, as far as this ledger has seen it."""
        return self._base.is_present()

    def reset(self) -> None:
        """In a forked child: the claims, the heartbeat and the connection are the parent's."""
        self._base.reset()
        self._begin()

    def _write_release(self, claim: Claim, note: AttemptNote | None) -> None:
        with self._base as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(schema.END_LEASE, (claim.place, claim.token))
            if note is not None:
                connection.execute(schema.INSERT_ATTEMPT, note_row(note))
            connection.execute("COMMIT")

    def _take_over(self, connection: sqlite3.Connection, mine: _Mine) -> list[Any] | Held:
        """The rows of a lease that was taken over, or who holds it."""
        place = mine.place
        found = connection.execute(schema.LEASE, (place,)).fetchone()
        if found is None:  # given up a moment ago
            return connection.execute(schema.CLAIM, mine).fetchall() or self._take_over(connection, mine)
        lease = Lease(found[0], owner_from_json(found[1]), found[2], found[3])
        if self._watcher.is_stale(place, lease):
            rows = connection.execute(schema.TAKE_OVER, (*mine, lease.token, lease.beat)).fetchall()
            if rows:
                return rows
        return Held(place, lease.owner)

    def _end_lease(self, connection: sqlite3.Connection, claim: Claim) -> None:
        if connection.execute(schema.END_LEASE, (claim.place, claim.token)).rowcount != 1:
            self._heart.end(claim)
            found = connection.execute(schema.LEASE, (claim.place,)).fetchone()
            raise lease_lost(self.url, claim, owner_from_json(found[1]) if found else None)

    def _check_free(self, connection: sqlite3.Connection, claim: Claim) -> None:
        if connection.execute(schema.NEWEST, (claim.place,)).fetchone()[0] >= claim.number:
            self._heart.end(claim)
            raise number_taken(self.url, claim)

    def _insert(self, connection: sqlite3.Connection, claim: Claim, build: Row) -> None:
        try:
            connection.execute(schema.INSERT_BUILD, build)
        except sqlite3.IntegrityError as error:
            self._heart.end(claim)
            raise number_taken(self.url, claim) from error

    def _beat(self, kept: Sequence[Kept]) -> None:
        """See `Beat`."""
        with self._base.lock:
            live = [each for each in kept if not each.ended]
            began = self._heart.clock()
            moved = self._move(live) if live else []
            for each, is_ours in zip(live, moved, strict=True):
                each.confirm(began) if is_ours else each.lose()

    def _move(self, kept: Sequence[Kept]) -> list[bool]:
        with self._base.impatient(self._heart.interval / 2) as connection:
            connection.execute("BEGIN IMMEDIATE")
            rows = [(each.claim.place, each.claim.token) for each in kept]
            moved = [connection.execute(schema.BEAT, row).rowcount == 1 for row in rows]
            connection.execute("COMMIT")
        return moved


def _build_row(claim: Claim, head: str, body: str) -> Row:
    place, _, number = claim
    return place, number, head, head_sum(place, number, head.encode()), body_sum(body.encode()), body


def _withdraw_former(connection: sqlite3.Connection, claim: Claim) -> None:
    """Its files are about to be replaced: it must not stand any more, even after a loss of power."""
    connection.execute("PRAGMA synchronous = FULL")
    try:
        connection.execute(schema.WITHDRAW_FORMER, (claim.place, claim.number, claim.token))
    finally:
        connection.execute("PRAGMA synchronous = NORMAL")
