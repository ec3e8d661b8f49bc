"""What the ledger knows of the outputs of a store, as far as gc asks: what is needed, and what is at work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from treadle.artifacts.prefix import is_url
from treadle.artifacts.store import Store
from treadle.artifacts.survey import Standing, standing_builds
from treadle.storage.ledger.process import is_gone

FINGERPRINT = re.compile(r"[0-9a-f]{64}")
"""The name of the output folder of a step without a version."""


class GarbageKind(Enum):
    """Why something is garbage."""

    WORK = "the working folder of an attempt whose process is gone"
    ASIDE = "a former output that was put aside by a process that is gone"
    UNRECORDED = "an output without a standing record"
    FORMER = "a former build, or an attempt that did not commit"
    UNWANTED = "nothing that is to be kept needs it"


@dataclass(frozen=True, slots=True)
class Garbage:
    """A folder or file that can be removed, with its size.

    `place` is that of the output which it belongs to, and empty for what belongs to none; `number` is the
    build that stands there, 0 when none does.
    """

    path: str
    bytes: int
    kind: GarbageKind
    place: str = ""
    number: int = 0

    @property
    def reason(self) -> str:
        """Why it is garbage, in words."""
        return self.kind.value


class _Output(NamedTuple):
    """A standing build, as far as gc needs it. Number 0: its record cannot be read."""

    number: int
    folder: str
    bytes: int
    is_adopted: bool


class Known:
    """The outputs of one store, by place; with `keep`, all that are not in it are unwanted."""

    def __init__(self, store: Store, keep: Set[str] | None) -> None:
        self._store = store
        # First: what is built between the two looks is then known by its build at least.
        notes = store.ledger.attempts()
        self._built = {note.place for note in notes if note.outcome == "done"}
        self._names = {note.name for note in notes}
        self._outputs = {each.place: _output(store, each) for each in standing_builds(store)}
        self._keep = None if keep is None else {store.place(each.rstrip("/")) for each in keep}
        needed = {place: each for place, each in self._outputs.items() if self._is_needed(place, each)}
        adopted = [store.place(each.folder) for each in needed.values() if each.is_adopted]
        self._sources = frozenset(adopted)
        self._needed = {*needed, *adopted}
        self._above = {above for place in (*self._outputs, *adopted) for above in parents(place)}

    def standing(self, place: str) -> int | None:
        """The number of the build that stands at the place, 0 when it cannot be read; None when none does."""
        found = self._outputs.get(place)
        return None if found is None else found.number

    def folder(self, place: str) -> str:
        """Where the files of the standing build are; empty without one."""
        found = self._outputs.get(place)
        return "" if found is None else found.folder

    def is_place(self, place: str) -> bool:
        """Whether this is the place of an output: by a build, or by its form and the name of a known step."""
        name, _, last = place.rpartition("/")
        by_form = name in self._names and FINGERPRINT.fullmatch(last) is not None
        return by_form or place in self._outputs or place in self._built

    def is_needed(self, place: str) -> bool:
        """Whether it is needed, has an output inside of it, or is part of data that was adopted."""
        inside = place in self._needed or place in self._above
        return inside or any(above in self._sources for above in parents(place))

    def unwanted(self) -> Iterator[Garbage]:
        """The outputs that are not to be kept. Nothing when all are; data that was adopted never is."""
        for place, each in self._outputs.items():
            inside = not place.startswith("/") and not is_url(place)
            if inside and not each.is_adopted and not self.is_needed(place):
                yield Garbage(each.folder, each.bytes, GarbageKind.UNWANTED, place, each.number)

    def without_leases(self, garbage: Iterable[Garbage]) -> list[Garbage]:
        """Those at whose place no process is at work, as far as can be seen."""
        listed = list(garbage)
        owners = self._store.ledger.owners({each.place for each in listed if each.place})
        alive = {place for place, owner in owners.items() if not is_gone(owner)}
        return [each for each in listed if each.place not in alive]

    def _is_needed(self, place: str, output: _Output) -> bool:
        return self._keep is None or place in self._keep or not output.number


def parents(place: str) -> Iterator[str]:
    """The folders around a place, the nearest first."""
    while place := place.rpartition("/")[0]:
        yield place


def _output(store: Store, found: Standing) -> _Output:
    output_path = store.output_path(found.place)
    if found.head is None:
        return _Output(0, output_path, 0, is_adopted=False)
    folder = store.folder(output_path, found.head)
    size = sum(each.bytes for each in found.head.files)
    return _Output(found.number, folder, size, store.is_adopted(output_path, found.head))
