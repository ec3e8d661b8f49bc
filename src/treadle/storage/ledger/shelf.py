"""The builds of a ledger of objects, read, marked and made.

Reading is all waiting, so it goes through a pool of threads: for each place one listing and one read.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from treadle.storage.ledger import names
from treadle.storage.ledger.bucket import Bucket
from treadle.storage.ledger.codec import body_sum, head_sum
from treadle.storage.ledger.messages import damaged, newer_format, no_such_build
from treadle.storage.ledger.protocol import AttemptNote, Claim, Entry

T = TypeVar("T")
U = TypeVar("U")

FORMAT = 1
_READERS = 32
_READS_AT_ONCE = 1000


class Shelf:
    """See `Ledger`; the part that needs no lease."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._bucket = Bucket(url)
        self._begin()

    def _begin(self) -> None:
        """Fresh locks and threads, for a new process or after `close`."""
        self._readers = ThreadPoolExecutor(_READERS, "treadle ledger")
        # The newest build of places that nobody was at work on when they were last seen.
        self._free: dict[str, int] = {}
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
        seen = self._listing(place)
        if not seen.generation:
            self._free[place] = seen.newest
        number = seen.standing
        return None if number is None else self._build(place, number)._replace(body="")

    def _put_build(self, claim: Claim, head: str, body: str, note: AttemptNote) -> bool:
        place, token, number = claim
        sums = _sums(place, number, head, body)
        told = {"note": dataclasses.asdict(note), "ended": self._stamp()}
        build = {"format": FORMAT, "token": token, "head": head, "body": body, **sums, **told}
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

    def _path(self, place: str, name: str) -> str:
        return f"{names.folder(place)}/{name}"

    def _stamp(self) -> int:
        """The time in nanoseconds, later than every one before in this process."""
        with self._stamping:
            self._last_stamp = max(time.time_ns(), self._last_stamp + 1)
            return self._last_stamp


def _sums(place: str, number: int, head: str, body: str) -> dict[str, int]:
    return {"head_sum": head_sum(place, number, head.encode()), "body_sum": body_sum(body.encode())}
