"""The attempts and runs of a ledger of objects, noted and read.

The attempt that made a build is in the build too, so that a commit is one request. Its own object, by whose
name it is found without reading, is made after it, and may be missing.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from treadle.errors import ArtifactError
from treadle.storage.ledger import names
from treadle.storage.ledger.protocol import AttemptNote, Claim, RunNote
from treadle.storage.ledger.shelf import Shelf

T = TypeVar("T")


class _Noted(NamedTuple):
    """An attempt: when it ended, its place and run, the name of its object, or what its build says."""

    time: int
    place: str
    run: str
    name: str
    note: AttemptNote | None = None


class NotedShelf(Shelf):
    """See `Ledger`."""

    def note(self, notes: Sequence[AttemptNote]) -> None:
        """See `Ledger`."""
        stamped = [(self._stamp(), each) for each in notes]
        self._each(lambda pair: self._put_attempt(*pair), stamped)

    def attempts(
        self, place: str | None = None, run: str | None = None, limit: int | None = None
    ) -> list[AttemptNote]:
        """See `Ledger`."""
        listings = self._listings() if place is None else {place: self._listing(place)}
        found = [each for place, seen in listings.items() for each in _told(place, seen)]
        found += self._untold(listings)
        mine = (each for each in found if run in (None, each.run))
        wanted = sorted(mine, key=_by_time, reverse=True)[:limit]
        return [each for each in self._each(self._attempt, wanted) if each is not None]

    def last_attempts(self, places: Iterable[str]) -> dict[str, AttemptNote]:
        """See `Ledger`."""
        found = self._each(self._last_attempt, places)
        return {each.place: each for each in found if each is not None}

    def places_of(self, step: str) -> list[str]:
        """See `Ledger`; the name of an object does not tell the id, so all attempts are read."""
        return sorted({each.place for each in self.attempts() if each.step_id.startswith(step)})

    def seconds(self, names: Iterable[str]) -> dict[str, float]:  # noqa: ARG002 - see `Ledger`
        """Nothing; see `Ledger`."""
        return {}

    def note_run(self, run: RunNote) -> None:
        """See `Ledger`."""
        self._bucket.write(names.run_path(run.run), json.dumps(dataclasses.asdict(run)).encode())

    def runs(self, limit: int | None = None) -> list[RunNote]:
        """See `Ledger`."""
        paths = [f"{names.RUNS}/{name}" for name in self._bucket.find(names.RUNS) if name.endswith(".json")]
        found = self._each(lambda path: self._note(RunNote, path), paths)
        notes = [each for each in found if each is not None]
        return sorted(notes, key=lambda each: (each.started, each.run), reverse=True)[:limit]

    def _put_attempt(self, stamp: int, note: AttemptNote) -> None:
        self._put_note(note, names.attempt(stamp, secrets.token_hex(4), note.run))

    def _put_attempt_of_build(self, claim: Claim, note: AttemptNote) -> None:
        self._put_note(note, names.attempt_of_build(self._stamp(), claim.number, note.run))

    def _put_note(self, note: AttemptNote, name: str) -> None:
        self._bucket.create(self._path(note.place, name), json.dumps(dataclasses.asdict(note)).encode())

    def _last_attempt(self, place: str) -> AttemptNote | None:
        found = _told(place, seen := self._listing(place)) + self._untold({place: seen})
        return self._attempt(max(found, key=_by_time)) if found else None

    def _untold(self, listings: Mapping[str, names.Listing]) -> list[_Noted]:
        """The attempts that only their builds tell of."""
        builds = [(place, number) for place, seen in listings.items() for number in seen.untold]
        return [each for each in self._each(lambda build: self._noted(*build), builds) if each is not None]

    def _noted(self, place: str, number: int) -> _Noted | None:
        """What that build says of its attempt; None when it is damaged, or written before builds said it."""
        try:
            found = json.loads(self._bucket.read(self._path(place, names.mark("build", number))) or b"{}")
            return _Noted(
                int(found["ended"]), place, str(found["note"]["run"]), "", AttemptNote(**found["note"])
            )
        except (KeyError, TypeError, ValueError):
            return None

    def _attempt(self, noted: _Noted) -> AttemptNote | None:
        return noted.note or self._note(AttemptNote, self._path(noted.place, noted.name))

    def _note(self, kind: Callable[..., T], path: str) -> T | None:
        """The note of an attempt or a run; None when it has been removed."""
        content = self._bucket.read(path)
        try:
            return None if content is None else kind(**self._parsed(path, content))
        except (TypeError, ValueError, AttributeError) as error:
            raise ArtifactError(
                f"{self.url}/{path}: this note is damaged: {error}; remove it, nothing needs it"
            ) from error


def _by_time(noted: _Noted) -> tuple[object, ...]:
    return noted[:4]


def _told(place: str, seen: names.Listing) -> list[_Noted]:
    return [_Noted(each.time, place, each.run, each.name) for each in seen.attempts]
