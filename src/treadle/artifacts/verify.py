"""verify: compare what is in a store with what its records say.

Each check of a record, a file or a folder is a piece of work of its own; some are under way at once, in
threads, since reading and hashing do not hold up Python. Findings come in the order of places and files. A
step that is built anew meanwhile is none: before one is told, the ledger is asked whether its build still
stands.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TypeAlias

from treadle.artifacts.folder import checksum, walk
from treadle.artifacts.prefix import is_url, join
from treadle.artifacts.record import FileEntry, RecordHead
from treadle.artifacts.store import Store
from treadle.artifacts.survey import Standing, standing_build, standing_builds, whole_record
from treadle.artifacts.value import decode_value
from treadle.errors import ArtifactError

_AT_ONCE = min(16, 2 * (os.cpu_count() or 1))
_AHEAD = 4 * _AT_ONCE


class Problem(Enum):
    """What can be wrong with an artifact."""

    NO_BUILD = "no build of it stands"
    RECORD = "its record cannot be read"
    VALUE = "its value cannot be read back"
    MISSING = "missing"
    SIZE = "another size"
    CHECKSUM = "other content"
    UNREADABLE = "cannot be read"
    EXTRA = "not in the record"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong at a place; `path` is the file or the folder, `detail` says more, or is empty.

    `step_id` is empty when the record that would tell it cannot be read.
    """

    place: str
    step_id: str
    problem: Problem
    path: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.problem.value}" + (f": {self.detail}" if self.detail else "")


_Check: TypeAlias = Callable[[], list[Finding]]


def verify(store: Store, places: Iterable[str] | None = None) -> Iterator[Finding]:
    """What is wrong with the artifacts of the store, or of some of its places, as it is found.

    Looks at records and values, and at each file: whether it is there, its size and its checksum. Of an
    object store the sizes and etags are compared, and nothing is downloaded. Needs memory for a few
    records only, whatever the number of artifacts.

    Raises:
        LedgerError: the ledger as a whole cannot be read.
    """
    pool = ThreadPoolExecutor(_AT_ONCE, "treadle-verify")
    try:
        for found in _in_order(pool, _checks(store, places)):
            yield from found
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(pool: ThreadPoolExecutor, checks: Iterator[_Check]) -> Iterator[list[Finding]]:
    running: deque[Future[list[Finding]]] = deque()
    for check in checks:
        running.append(pool.submit(check))
        if len(running) > _AHEAD:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def _checks(store: Store, places: Iterable[str] | None) -> Iterator[_Check]:
    for found in standing_builds(store) if places is None else _asked_for(store, places):
        path = store.output_path(found.place)
        if isinstance(found, Finding):
            yield partial(list, [found])
        elif found.head is None:
            yield partial(list, [Finding(found.place, "", Problem.RECORD, path, found.damage)])
        else:
            artifact = _Artifact(store, found, found.head)
            yield from map(artifact.confirmed, artifact.checks())


def _asked_for(store: Store, places: Iterable[str]) -> Iterator[Standing | Finding]:
    for place in places:
        found = standing_build(store, place)
        yield found or Finding(place, "", Problem.NO_BUILD, store.output_path(place))


class _Artifact:
    """One build, and the checks of it."""

    def __init__(self, store: Store, found: Standing, head: RecordHead) -> None:
        self._store = store
        self._found = found
        self._head = head
        self._output = store.output_path(found.place)
        self._folder = store.folder(self._output, head)

    def checks(self) -> Iterator[_Check]:
        yield self._record
        if self._store.is_adopted(self._output, self._head):
            yield self._source
        elif is_url(self._folder):
            yield self._objects
        else:
            yield from (partial(self._file, entry) for entry in self._head.files)
            yield self._extra

    def confirmed(self, check: _Check) -> _Check:
        """The check, whose findings count only while this build stands."""
        return partial(self._confirm, check)

    def _confirm(self, check: _Check) -> list[Finding]:
        findings = check()
        if findings:
            now = standing_build(self._store, self._found.place)
            if now is None or (now.head is not None and now.number != self._found.number):
                return []
        return findings

    def _record(self) -> list[Finding]:
        try:
            record = whole_record(self._store, self._found.place, self._found.number)
        except ArtifactError as error:
            return [self._finding(Problem.RECORD, self._output, str(error))]
        try:
            decode_value(record.body.value, self._folder)
        except ArtifactError as error:
            return [self._finding(Problem.VALUE, self._output, str(error))]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - from the module of a class, when imported
            return [self._finding(Problem.VALUE, self._output, f"{type(error).__name__}: {error}")]
        return []

    def _source(self) -> list[Finding]:
        try:
            return [] if _exists(self._folder) else [self._finding(Problem.MISSING, self._folder)]
        except Exception as error:  # noqa: BLE001 - storages raise what they like
            return [self._finding(Problem.UNREADABLE, self._folder, f"{type(error).__name__}: {error}")]

    def _file(self, entry: FileEntry) -> list[Finding]:
        path = Path(self._folder, entry.path)
        try:
            size, content = path.stat().st_size, entry.checksum
            if size == entry.bytes and path.is_file():  # else the size tells enough
                with path.open("rb") as file:
                    content = checksum(file)
        except (FileNotFoundError, NotADirectoryError):
            return [self._finding(Problem.MISSING, str(path))]
        except OSError as error:
            return [self._finding(Problem.UNREADABLE, str(path), str(error))]
        return self._compare(str(path), entry, FileEntry(entry.path, size, content))

    def _objects(self) -> list[Finding]:
        """All objects of one folder: one listing tells everything about them."""
        try:
            found = {each.path: each for each in _list(self._folder)}
        except Exception as error:  # noqa: BLE001 - storages raise what they like
            return [self._finding(Problem.UNREADABLE, self._folder, f"{type(error).__name__}: {error}")]
        findings: list[Finding] = []
        for entry in self._head.files:
            path, there = join(self._folder, entry.path), found.pop(entry.path, None)
            findings += self._compare(path, entry, there) if there else [self._finding(Problem.MISSING, path)]
        return findings + [self._finding(Problem.EXTRA, join(self._folder, path)) for path in sorted(found)]

    def _extra(self) -> list[Finding]:
        known = {each.path for each in self._head.files}
        try:
            extra = sorted(path for path in walk(self._folder) if path not in known)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            return [self._finding(Problem.UNREADABLE, self._folder, str(error))]
        return [self._finding(Problem.EXTRA, str(Path(self._folder, path))) for path in extra]

    def _compare(self, path: str, expected: FileEntry, found: FileEntry) -> list[Finding]:
        if found.bytes != expected.bytes:
            detail = f"expected {expected.bytes:,} bytes, got {found.bytes:,}"
            return [self._finding(Problem.SIZE, path, detail)]
        if found.checksum and expected.checksum and found.checksum != expected.checksum:
            detail = f"expected {expected.checksum}, got {found.checksum}"
            return [self._finding(Problem.CHECKSUM, path, detail)]
        return []

    def _finding(self, problem: Problem, path: str, detail: str = "") -> Finding:
        return Finding(self._found.place, self._head.step_id, problem, path, detail)


def _exists(path: str) -> bool:
    if not is_url(path):
        return Path(path).exists()
    # Here: fsspec takes a tenth of a second to load, which a local store need not wait for.
    from treadle.storage.reach import path_at, reach

    return reach(path).ask(lambda fs: bool(fs.exists(path_at(fs, path))), "look for", path)


def _list(folder: str) -> Iterable[FileEntry]:
    from treadle.artifacts.remote_workplace import list_files

    return list_files(folder)
