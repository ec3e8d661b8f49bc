"""What nobody needs in a store on a local disk: found, and removed."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from treadle.artifacts.folder import is_folder
from treadle.artifacts.gc_known import Garbage, GarbageKind, Known
from treadle.artifacts.prefix import join
from treadle.artifacts.store import Store
from treadle.artifacts.workplace import OWN, UNIQUE, beside, is_left

_FORSAKEN_S = 7 * 24 * 3600
"""Of a process on another machine nothing is known; after so long without a change its folder is given up."""


def find(store: Store, known: Known) -> Iterator[Garbage]:
    """What dead processes have left, and output folders without a standing record."""
    for folder in _listed(join(store.prefix, OWN, "work")):
        if _is_forsaken(folder.name, folder.path):
            yield Garbage(folder.path, _size(folder.path), GarbageKind.WORK)
    yield from _find_outputs(store.prefix, "", known)


def remove_left(prefix: str, garbage: Garbage) -> bool:
    """Remove what a dead process has left; False when it is gone already, or not dead after all."""
    path = Path(garbage.path)
    if not _is_inside(prefix, garbage.path) or not _is_forsaken(_mark(path.name), garbage.path):
        return False
    return _erase(path)


def delete(prefix: str, path: str) -> bool:
    """Remove an output folder, which vanishes in one step; False when it is gone already."""
    if not _is_inside(prefix, path) or not os.path.lexists(path):
        return False
    aside = Path(beside(path))
    Path(path).rename(aside)
    return _erase(aside)


def _find_outputs(folder: str, below: str, known: Known) -> Iterator[Garbage]:
    for entry in _listed(folder):
        place = f"{below}{entry.name}"
        if place == OWN or known.standing(place) is not None:
            continue
        if mark := _mark(entry.name):
            if entry.name.startswith(".") and _is_forsaken(mark, entry.path):
                yield Garbage(entry.path, _size(entry.path), GarbageKind.ASIDE)
        elif known.is_place(place) and not known.is_needed(place):
            yield Garbage(entry.path, _size(entry.path), GarbageKind.UNRECORDED, place)
        elif entry.is_dir(follow_symlinks=False):
            yield from _find_outputs(entry.path, f"{place}/", known)


def _listed(folder: str) -> list[os.DirEntry[str]]:
    """What is in the folder, sorted; nothing of one that is gone by now, or that may not be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda each: each.name)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _mark(name: str) -> str:
    """The part of a name that says which process it is of; empty when it has none."""
    last = name.rpartition(".")[2]
    return last if UNIQUE.fullmatch(last) else ""


def _is_forsaken(mark: str, path: str) -> bool:
    if not UNIQUE.fullmatch(mark):
        return False
    return is_left(mark) or time.time() - _last_change(path) > _FORSAKEN_S


def _last_change(path: str) -> float:
    """The time of the latest change to a folder or to something in it; now, when that cannot be seen."""
    try:
        times = [os.lstat(path).st_mtime]
        for folder, _, files in os.walk(path):
            times += [os.lstat(each).st_mtime for each in (folder, *(f"{folder}/{name}" for name in files))]
    except OSError:
        return time.time()
    return max(times)


def _size(path: str) -> int:
    """The bytes of a file, or of all files below a folder; what vanishes meanwhile does not count."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return 0
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    return sum(_size(entry.path) for entry in _listed(path))


def _is_inside(prefix: str, path: str) -> bool:
    """Whether the path leads into the store without a link on the way."""
    inside = Path(path).relative_to(prefix).parent
    return ".." not in inside.parts and Path(prefix, inside).resolve() == Path(prefix).resolve() / inside


def _erase(path: Path) -> bool:
    try:
        if is_folder(path):
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        return False
    return True
