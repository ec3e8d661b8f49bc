"""The part of a ledger of objects that needs no lease: builds, attempts and runs, read and noted.

Reading is all waiting, so it goes through a pool of threads: for each place one listing and one read.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from treadle.errors import ArtifactError
from treadle.storage.ledger import names
from treadle.storage.ledger.bucket import Bucket
from treadle.storage.ledger.codec import body_sum, head_sum
from treadle.storage.ledger.messages import damaged, newer_format, no_such_build
from treadle.storage.ledger.protocol import AttemptNote, Claim, Entry, RunNote

T = TypeVar("T")
U = TypeVar("U")

FORMAT = 1
_READERS = 32
_READS_AT_ONCE = 1000


class Shelf:
    """See `Ledger`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._bucket = Bucket(url)
        self._begin()

    def _begin(self) -> None:
        """Fresh locks and threads, for a new process or after `close`."""
        self._readers = ThreadPoolExecutor(_READERS, "treadle ledger")
        self._stamping = threading.Lock()
        self._last_stamp = 0

    def latest(self, places: Iterable[str]) -> dict[str, Entry]:
        """See `Ledger`."""
        found = self._each(self._standing, places)
        return {entry.place: entry for entry in found if entry is not None}

    def body(self, place: str, number: int) -> str:
        """See `Ledger`."""
        return self._build(place, number).body

    def builds(self, place: str) -> list[Entry]:
        """See `Ledger`."""
        listing = self._listing(place)
        numbers = sorted(listing.builds - listing.forgotten)
        entries = self._each(lambda number: self._build(place, number), numbers)
        return [each._replace(stands=each.number == listing.standing) for each in entries]

    def places(self) -> Iterator[Entry]:
        """See `Ledger`."""
        listings = sorted(self._listings().items())
        numbers = [(place, found.standing) for place, found in listings]
        standing = [(place, number) for place, number in numbers if number is not None]
        for start in range(0, len(standing), _READS_AT_ONCE):
            part = standing[start : start + _READS_AT_ONCE]
            yield from self._each(lambda each: self._build(*each)._replace(body=""), part)

    def withdraw(self, place: str) -> None:
        """See `Ledger`."""
        number = self._listing(place).standing
        if number is not None:
            self._put_mark("withdrawn", place, number)

    def forget(self, place: str, numbers: Collection[int]) -> None:
        """See `Ledger`."""
        listing = self._listing(place)
        for number in sorted(listing.builds.intersection(numbers)):
            self._put_mark("forgotten", place, number)
            self._bucket.remove([self._path(place, names.mark("build", number))])

    def note(self, notes: Sequence[AttemptNote]) -> None:
        """See `Ledger`."""
        stamped = [(self._stamp(), each) for each in notes]
        self._each(lambda pair: self._put_attempt(*pair), stamped)

    def attempts(
        self, place: str | None = None, run: str | None = None, limit: int | None = None
    ) -> list[AttemptNote]:
        """See `Ledger`."""
        listings = self._listings() if place is None else {place: self._listing(place)}
        found = [(name, where) for where, listing in listings.items() for name in listing.attempts]
        wanted = sorted((pair for pair in found if run in (None, pair[0].run)), reverse=True)[:limit]
        return [each for each in self._each(lambda pair: self._attempt(*pair), wanted) if each is not None]

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

    def _each(self, act: Callable[[T], U], items: Iterable[T]) -> list[U]:
        listed = list(items)
        if len(listed) < 2:
            return [act(each) for each in listed]
        return list(self._readers.map(act, listed))

    def _listing(self, place: str) -> names.Listing:
        return names.listing(self._bucket.find(names.folder(place)))

    def _listings(self) -> dict[str, names.Listing]:
        found = defaultdict(list)
        for path in self._bucket.find(names.PLACES):
            place, name = names.place_of(path)
            found[place].append(name)
        return {place: names.listing(each) for place, each in found.items()}

    def _standing(self, place: str) -> Entry | None:
        number = self._listing(place).standing
        return None if number is None else self._build(place, number)._replace(body="")

    def _put_build(self, claim: Claim, head: str, body: str) -> bool:
        place, token, number = claim
        sums = _sums(place, number, head, body)
        build = {"format": FORMAT, "token": token, "head": head, "body": body, **sums}
        return self._bucket.create(self._path(place, names.mark("build", number)), json.dumps(build).encode())

    def _build(self, place: str, number: int) -> Entry:
        path = self._path(place, names.mark("build", number))
        content = self._bucket.read(path)
        if content is None:
            raise no_such_build(self.url, place, number)
        try:
            found = self._parsed(path, content)
            head, body = found["head"], found["body"]
            whole = _sums(place, number, head, body).items() <= found.items()
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise damaged(self.url, place, number, str(error)) from error
        if not whole:
            raise damaged(self.url, place, number)
        return Entry(place, number, head, body)

    def _parsed(self, path: str, content: bytes) -> dict[str, Any]:
        found = json.loads(content)
        if found.get("format", FORMAT) > FORMAT:
            raise newer_format(f"{self.url}/{path}", found["format"], FORMAT)
        return dict(found)

    def _put_mark(self, kind: str, place: str, number: int) -> None:
        self._bucket.create(self._path(place, names.mark(kind, number)), b"{}")

    def _put_attempt(self, stamp: int, note: AttemptNote) -> None:
        name = names.attempt(stamp, secrets.token_hex(4), note.run)
        self._bucket.create(self._path(note.place, name), json.dumps(dataclasses.asdict(note)).encode())

    def _last_attempt(self, place: str) -> AttemptNote | None:
        attempts = self._listing(place).attempts
        return self._attempt(attempts[-1], place) if attempts else None

    def _attempt(self, name: names.AttemptName, place: str) -> AttemptNote | None:
        return self._note(AttemptNote, self._path(place, name.name))

    def _note(self, kind: Callable[..., T], path: str) -> T | None:
        """The note of an attempt or a run; None when it has been removed."""
        content = self._bucket.read(path)
        try:
            return None if content is None else kind(**self._parsed(path, content))
        except (TypeError, ValueError, AttributeError) as error:
            raise ArtifactError(
                f"{self.url}/{path}: this note is damaged: {error}; remove it, nothing needs it"
            ) from error

    def _path(self, place: str, name: str) -> str:
        return f"{names.folder(place)}/{name}"

    def _stamp(self) -> int:
        """The time in nanoseconds, later than every one before in this process."""
        with self._stamping:
            self._last_stamp = max(time.time_ns(), self._last_stamp + 1)
            return self._last_stamp


def _sums(place: str, number: int, head: str, body: str) -> dict[str, int]:
    return {"head_sum": head_sum(place, number, head.encode()), "body_sum": body_sum(body.encode())}
