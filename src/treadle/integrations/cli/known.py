"""The steps that a store knows, and what tells those of one name apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from treadle.artifacts import Json, RecordHead, Store, is_url
from treadle.artifacts.survey import Standing, standing_at, standing_builds, whole_record
from treadle.errors import ArtifactError
from treadle.execution.labels import labels_of
from treadle.integrations.progress.state import called
from treadle.storage.ledger import AttemptNote, Owner
from treadle.storage.ledger.process import is_gone

_DIGITS = 64
_BODIES = 200
_READERS = 16


@dataclass(frozen=True, slots=True)
class Known:
    """A step that the store knows: its standing build, if it has one, and the last attempt at it, if any.

    `damage` says why the record of the build cannot be read; `printed` is when it last wrote to its log;
    `owner` has the lease, dead or alive.
    """

    place: str
    id: str
    name: str
    number: int = 0
    head: RecordHead | None = None
    damage: str = ""
    attempt: AttemptNote | None = None
    printed: str = ""
    owner: Owner | None = None

    @property
    def time(self) -> str:
        """When it was last worked on; ISO 8601 in UTC."""
        built = self.head.started if self.head is not None else ""
        tried = self.attempt.started if self.attempt is not None else ""
        return max(built, tried, self.printed, self.owner.since if self.owner is not None else "")

    @property
    def is_built(self) -> bool:
        """Whether a build of it stands."""
        return self.head is not None or bool(self.damage)

    @property
    def at_work(self) -> Owner | None:
        """Who is at work on it; nobody when that is a process of this machine which is gone."""
        return None if self.owner is None or is_gone(self.owner) else self.owner


def known_steps(store: Store) -> list[Known]:
    """Every step that was ever built or attempted, or is at work, sorted by place."""
    last_attempts: dict[str, AttemptNote] = {}
    for note in store.ledger.attempts():
        last_attempts.setdefault(note.place, note)
    return _known(standing_builds(store), last_attempts, dict(store.leases()))


def known_at(store: Store, places: Collection[str], owners: Mapping[str, Owner]) -> list[Known]:
    """The same of these places, and of those that have one of `owners`."""
    return _known(standing_at(store, places), store.ledger.last_attempts(places), owners)


def _known(
    builds: Iterable[Standing], last_attempts: Mapping[str, AttemptNote], owners: Mapping[str, Owner]
) -> list[Known]:
    found: dict[str, Known] = {}
    for each in builds:
        last = last_attempts.get(each.place)
        step_id, name = id_and_name(each.place, each.head, last)
        found[each.place] = Known(each.place, step_id, name, each.number, each.head, each.damage, last)
    for place, note in last_attempts.items():
        found.setdefault(place, Known(place, note.step_id, note.name, attempt=note))
    for place, owner in owners.items():
        seen = found.get(place) or Known(place, *id_and_name(place))
        found[place] = replace(seen, owner=owner)
    return [found[place] for place in sorted(found)]


def id_and_name(
    place: str, head: RecordHead | None = None, note: AttemptNote | None = None
) -> tuple[str, str]:
    """Id and name; where no record tells them, what the place says."""
    if head is not None:
        return head.step_id, head.name
    if note is not None:
        return note.step_id, note.name
    name, _, last = place.rpartition("/")
    if not name or place.startswith("/") or is_url(place):  # it was given a place of its own
        return place, place
    return (f"{name}-{last[:12]}" if len(last) == _DIGITS else f"{name}@{last}"), name


def called_apart(store: Store, steps: Sequence[Known]) -> list[str]:
    """The ids of these steps, or the places where ids are the same, with what tells them apart."""
    ids = Counter(each.id for each in steps)
    told = labels_in(store, steps)
    return [called(each.id if ids[each.id] == 1 else each.place, told.get(each.place, "")) for each in steps]


def labels_in(store: Store, steps: Sequence[Known]) -> dict[str, str]:
    """Place -> what tells a built step from others of its name; of very many steps nothing is read."""
    if len(steps) > _BODIES:
        return {}
    names = Counter(each.name for each in steps)
    built = [each for each in steps if each.head is not None and names[each.name] > 1]
    with ThreadPoolExecutor(_READERS) as pool:
        recipes = list(pool.map(partial(_recipe, store), built))
    pairs = zip(built, recipes, strict=True)
    return labels_of({each.place: (each.name, recipe) for each, recipe in pairs if recipe is not None})


def _recipe(store: Store, step: Known) -> Json | None:
    try:
        return whole_record(store, step.place, step.number).body.config
    except ArtifactError:  # damaged, or withdrawn a moment ago: `verify` tells
        return None
