"""What nobody needs in a store on an object store: the folders of attempts that no record points to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from treadle.artifacts.gc_known import Garbage, GarbageKind, Known
from treadle.artifacts.prefix import join
from treadle.artifacts.remote_workplace import remove_files
from treadle.artifacts.store import Store
from treadle.artifacts.workplace import OWN
from treadle.storage.reach import find as find_below
from treadle.storage.reach import path_at, reach

_ATTEMPT = re.compile(r"[0-9a-f]{32}")


def find(store: Store, known: Known) -> Iterator[Garbage]:
    """Every folder of an attempt that is not that of a standing build."""
    for (place, attempt), size in sorted(_attempts(store.prefix, known).items()):
        path = join(store.prefix, place, attempt)
        number = known.standing(place)
        if number == 0 or path == known.folder(place) or known.is_needed(f"{place}/{attempt}"):
            continue
        kind = GarbageKind.UNRECORDED if number is None else GarbageKind.FORMER
        yield Garbage(path, size, kind, place, number or 0)


def delete(path: str) -> bool:
    """Remove the objects below a URL; False when there are none any more."""
    return remove_files(path)


def _attempts(prefix: str, known: Known) -> Counter[tuple[str, str]]:
    """The bytes of each folder of an attempt, by its place and its name there."""
    way = reach(prefix)
    root = path_at(way.fs(), prefix)
    start = len(root) + 1
    sizes: Counter[tuple[str, str]] = Counter()
    for top in way.ask(partial(_tops, root=root), "list", prefix):  # one by one: a bucket may hold very much
        if top[start:].rstrip("/") != OWN:
            for path, info in way.ask(partial(find_below, folder=top.rstrip("/")), "list", prefix).items():
                if (attempt := _attempt(path[start:], known)) is not None:
                    sizes[attempt] += int(info["size"] or 0)
    return sizes


def _tops(fs: Any, root: str) -> list[str]:
    try:
        return sorted(fs.ls(root, detail=False))
    except FileNotFoundError:
        return []


def _attempt(path: str, known: Known) -> tuple[str, str] | None:
    """The place and the folder there that an object belongs to; None when it is no attempt's."""
    parts = path.split("/")
    for length in range(1, len(parts) - 1):
        place = "/".join(parts[:length])
        if known.is_place(place):
            return (place, parts[length]) if _ATTEMPT.fullmatch(parts[length]) else None
    return None
