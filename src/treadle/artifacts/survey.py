"""The standing builds of a store, one place after the other; damage is something to tell, not to raise."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from treadle.artifacts.record import Record, RecordHead
from treadle.artifacts.store import Store
from treadle.errors import ArtifactError, LedgerError
from treadle.storage.ledger import Entry


@dataclass(frozen=True, slots=True)
class Standing:
    """The build that stands at a place: its number and head, or why that cannot be read."""

    place: str
    number: int = 0
    head: RecordHead | None = None
    damage: str = ""


def standing_builds(store: Store) -> Iterator[Standing]:
    """The standing build of every place, sorted by place.

    Raises:
        LedgerError: the ledger as a whole cannot be read.
    """
    last = ""
    try:
        for entry in store.ledger.places():
            yield _read(store, entry)
            last = entry.place
    except LedgerError:
        raise
    except ArtifactError:  # a damaged build ends the listing: the rest one by one, by what was ever attempted
        rest = [place for place in attempted_places(store) if place > last]
        yield from standing_at(store, rest)


def standing_at(store: Store, places: Collection[str]) -> Iterator[Standing]:
    """The standing builds of these places; a place that has none is left out."""
    try:
        entries = store.ledger.latest(places)
    except LedgerError:
        raise
    except ArtifactError:  # one of them is damaged: which, and the others, one by one
        yield from filter(None, (standing_build(store, place) for place in places))
    else:
        yield from (_read(store, entry) for entry in entries.values())


def standing_build(store: Store, place: str) -> Standing | None:
    """The standing build of one place, None when it has none."""
    try:
        entry = store.ledger.latest([place]).get(place)
    except LedgerError:
        raise
    except ArtifactError as error:
        return Standing(place, damage=str(error))
    return None if entry is None else _read(store, entry)


def whole_record(store: Store, place: str, number: int) -> Record:
    """Head and body of a standing build.

    Raises:
        ArtifactError: they cannot be read.
    """
    record = store.record(store.output_path(place))
    if record is None or record.number != number:
        raise ArtifactError(f"{store.ledger.url}: {place}: build {number} does not stand any more")
    return record


def attempted_places(store: Store) -> list[str]:
    """Every place that an attempt was ever made at, sorted.

    Raises:
        LedgerError: the ledger as a whole cannot be read.
    """
    return sorted({note.place for note in store.ledger.attempts()})


def _read(store: Store, entry: Entry) -> Standing:
    try:
        return Standing(entry.place, entry.number, store.head(entry))
    except ArtifactError as error:
        return Standing(entry.place, entry.number, damage=str(error))
