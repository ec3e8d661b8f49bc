"""How the objects of a ledger are named, and what a listing of them says.

    {prefix}/.treadle/places/{place}/@/build-00000001.json           a build
                                       withdrawn-00000001.json       it does not stand any more
                                       forgotten-00000001.json       it was dropped; its number is not reused
                                       lease-00000002-00000001.json  a sign of life of who makes build 2
                                       attempt-{time}-{token}-{run}.json
                                       attempt-{time}-b00000001-{run}.json   the attempt that made build 1
    {prefix}/.treadle/runs/{run}.json

The places lie together, and not in the folders of the outputs, so that one listing finds them all and that an
output folder can be renamed into place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, unquote

PLACES = ".treadle/places"
RUNS = ".treadle/runs"

_MARK = re.compile(r"(build|withdrawn|forgotten)-(\d+)\.json")
_LEASE = re.compile(r"lease-(\d+)-(\d+)\.json")
_ATTEMPT = re.compile(r"attempt-(\d+)-(?:b(\d{8,})|[0-9a-f]+)-(.*)\.json")


class AttemptName(NamedTuple):
    """The name of the object of an attempt, and what it tells.

    `time` in nanoseconds since 1970; `build` is the number of the build that it made, 0 when it made none.
    """

    time: int
    run: str
    name: str
    build: int = 0


@dataclass
class Listing:
    """What a place has: numbers of builds by kind of mark, generations of leases by number, attempts."""

    builds: set[int] = field(default_factory=set)
    withdrawn: set[int] = field(default_factory=set)
    forgotten: set[int] = field(default_factory=set)
    leases: dict[int, list[int]] = field(default_factory=dict)
    attempts: list[AttemptName] = field(default_factory=list)

    @property
    def newest(self) -> int:
        """The highest number ever committed; 0 when there is none."""
        return max((*self.builds, *self.withdrawn, *self.forgotten), default=0)

    @property
    def standing(self) -> int | None:
        """The number of the build that stands."""
        stands = self.newest in self.builds - self.withdrawn - self.forgotten
        return self.newest if stands else None

    @property
    def untold(self) -> set[int]:
        """The builds whose attempt has no object of its own: whoever made them was cut off just then."""
        return self.builds - {each.build for each in self.attempts}

    @property
    def generation(self) -> int:
        """The last sign of life of whoever makes the next build; 0 when nobody ever did."""
        return max(self.leases.get(self.newest + 1, ()), default=0)


def listing(names: Iterable[str]) -> Listing:
    """What the names in the folder of a place say. Other names are passed over."""
    found = Listing()
    kinds = {"build": found.builds, "withdrawn": found.withdrawn, "forgotten": found.forgotten}
    for name in names:
        if match := _MARK.fullmatch(name):
            kinds[match[1]].add(int(match[2]))
        elif match := _LEASE.fullmatch(name):
            found.leases.setdefault(int(match[1]), []).append(int(match[2]))
        elif match := _ATTEMPT.fullmatch(name):
            found.attempts.append(AttemptName(int(match[1]), unquote(match[3]), name, int(match[2] or 0)))
    found.attempts.sort()
    return found


def folder(place: str) -> str:
    """Where the objects of a place lie, below the prefix. No two places have one folder."""
    # `@` is escaped in a place, so it sets the objects of `a` apart from those of `a/b`.
    inner = quote(place.removeprefix("/"), safe="/").replace("//", "/%2F")
    if inner.endswith("/"):
        inner = f"{inner[:-1]}%2F"
    start = "%2F" if place.startswith("/") else ""
    return f"{PLACES}/{start}{inner}/@"


def place_of(path: str) -> tuple[str, str]:
    """The place and the name of an object, by its path below `PLACES`."""
    inner, _, name = path.rpartition("/")
    return unquote(inner.removesuffix("/@")), name


def mark(kind: str, number: int) -> str:
    """The name of a build or of a mark on it."""
    return f"{kind}-{number:08d}.json"


def lease(number: int, generation: int) -> str:
    """The name of one sign of life."""
    return f"lease-{number:08d}-{generation:08d}.json"


def attempt(time: int, token: str, run: str) -> str:
    """The name of the object of an attempt."""
    return f"attempt-{time:020d}-{token}-{quote(run, safe='')}.json"


def attempt_of_build(time: int, number: int, run: str) -> str:
    """The name of the object of the attempt that made that build."""
    return attempt(time, f"b{number:08d}", run)


def run_path(run: str) -> str:
    """Where the object of a run lies, below the prefix."""
    return f"{RUNS}/{quote(run, safe='')}.json"
