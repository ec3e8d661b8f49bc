"""The part of a ledger in SQLite that needs no lease: builds, attempts and runs, read and noted."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from treadle.storage.ledger import schema
from treadle.storage.ledger.codec import body_sum, head_sum, note_row, run_row
from treadle.storage.ledger.database import Database
from treadle.storage.ledger.messages import damaged, no_such_build
from treadle.storage.ledger.protocol import AttemptNote, Entry, RunNote

_PLACES_AT_ONCE = 5000


class SqliteHistory:
    """See `Ledger`."""

    def __init__(self, path: str) -> None:
        self.url = path
        self._base = Database(path)

    def latest(self, places: Iterable[str]) -> dict[str, Entry]:
        """See `Ledger`."""
        rows = self._read_in_parts(schema.LATEST, places)
        return {row[0]: self._head(*row) for row in rows if row[2] == schema.STANDING}

    def body(self, place: str, number: int) -> str:
        """See `Ledger`."""
        rows = self._base.read(schema.BODY, (place, number))
        if not rows:
            raise no_such_build(self.url, place, number)
        return self._checked_body(place, number, *rows[0])

    def builds(self, place: str) -> list[Entry]:
        """See `Ledger`."""
        rows = self._base.read(schema.BUILDS, (place,))
        newest = rows[-1][0] if rows else 0
        entries = []
        for number, withdrawn, head, checksum, body, checksum_of_body in rows:
            if withdrawn != schema.FORGOTTEN:
                entry = self._head(place, number, withdrawn, head, checksum)
                text = self._checked_body(place, number, body, checksum_of_body)
                stands = number == newest and withdrawn == schema.STANDING
                entries.append(entry._replace(body=text, stands=stands))
        return entries

    def places(self) -> Iterator[Entry]:
        """See `Ledger`."""
        last = ""
        while rows := self._base.read(schema.PLACES, (last, _PLACES_AT_ONCE)):
            yield from (self._head(*row) for row in rows if row[2] == schema.STANDING)
            last = rows[-1][0]

    def withdraw(self, place: str) -> None:
        """See `Ledger`."""
        self._base.write_all(schema.WITHDRAW, [(place,)])

    def forget(self, place: str, numbers: Collection[int]) -> None:
        """See `Ledger`."""
        self._base.write_all(schema.FORGET, [(place, json.dumps(sorted(numbers)))])

    def note(self, notes: Sequence[AttemptNote]) -> None:
        """See `Ledger`."""
        self._base.write_all(schema.INSERT_ATTEMPT, map(note_row, notes))

    def attempts(
        self, place: str | None = None, run: str | None = None, limit: int | None = None
    ) -> list[AttemptNote]:
        """See `Ledger`."""
        most = -1 if limit is None else limit
        if place is None:
            rows = self._base.read(schema.ATTEMPTS, (run, most))
        else:
            rows = self._base.read(schema.ATTEMPTS_AT, (run, most, place))
        return [AttemptNote(*row) for row in rows]

    def last_attempts(self, places: Iterable[str]) -> dict[str, AttemptNote]:
        """See `Ledger`."""
        notes = (AttemptNote(*row) for row in self._read_in_parts(schema.LAST_ATTEMPTS, places))
        return {each.place: each for each in notes}

    def places_of(self, step: str) -> list[str]:
        """See `Ledger`."""
        return [place for (place,) in self._base.read(schema.PLACES_OF, (step,))]

    def seconds(self, names: Iterable[str]) -> dict[str, float]:
        """See `Ledger`."""
        return dict(self._base.read(schema.SECONDS, (json.dumps(sorted(set(names))),)))

    def note_run(self, run: RunNote) -> None:
        """See `Ledger`."""
        self._base.write_all(schema.INSERT_RUN, [run_row(run)])

    def runs(self, limit: int | None = None) -> list[RunNote]:
        """See `Ledger`."""
        rows = self._base.read(schema.RUNS, (-1 if limit is None else limit,))
        return [
            RunNote(run, start, end, host, line, json.loads(counts))
            for run, start, end, host, line, counts in rows
        ]

    def _read_in_parts(self, statement: str, places: Iterable[str]) -> Iterator[Any]:
        wanted = list(places)
        for start in range(0, len(wanted), _PLACES_AT_ONCE):
            yield from self._base.read(statement, (json.dumps(wanted[start : start + _PLACES_AT_ONCE]),))

    def _head(self, place: str, number: int, withdrawn: int, head: bytes, checksum: int) -> Entry:
        if head_sum(place, number, head) != checksum:
            raise damaged(self.url, place, number)
        return Entry(place, number, str(head, "utf-8"), "", withdrawn == schema.STANDING)

    def _checked_body(self, place: str, number: int, body: bytes, checksum: int) -> str:
        if body_sum(body) != checksum:
            raise damaged(self.url, place, number)
        return str(body, "utf-8")
