"""Where the body of a step writes, and how that becomes the output of the step.

Each attempt fills a folder of its own. On a local disk that is a folder of the store's `.treadle/work`,
and the folder becomes the output path by one rename. An object store cannot rename folders: there the
attempt's folder lies below the output path and stays, and the record says which one it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeAlias

from treadle.artifacts.folder import is_folder, make_relative, synced_entry, walk
from treadle.artifacts.prefix import is_url, join
from treadle.artifacts.record import FileEntry
from treadle.errors import StepError
from treadle.storage.ledger.process import is_gone, this_owner

_Free: TypeAlias = list[tuple[int, str]]
"""Empty folders, each with the process that made it."""
OWN = ".treadle"
"""The folder of a store that is treadle's own."""
UNIQUE = re.compile(r"(?P<pid>\d+)-(?P<started>\d+)-(?P<machine>[0-9a-f]{8})-[0-9a-f]{12}")
"""The name of a working folder, and the end of that of a folder put aside: which process made it."""


class WorkFolder(Protocol):
    """The folder that one attempt fills."""

    @property
    def path(self) -> str:
        """Where the body writes."""
        ...

    @property
    def location(self) -> str:
        """Where the files are once published, as seen from the output path; empty: there."""
        ...

    def files(self) -> tuple[FileEntry, ...]:
        """What the body left, with sizes and checksums, sorted by path, and safe on the disk.

        Raises:
            StepError: the folder is gone.
        """
        ...

    def publish(self) -> None:
        """Make what `files` has listed the output, in place of whatever was there."""
        ...

    def close(self) -> None:
        """The attempt is over; what was not published is of no use."""
        ...


class Workplace(Protocol):
    """Where the folders of attempts are made, and where outputs are looked at."""

    def open(self, output_path: str) -> WorkFolder:
        """An empty folder for an attempt at this output, that nobody else writes to."""
        ...

    def stand(self, folder: str, files: Iterable[FileEntry]) -> bool:
        """Whether the files are there, with their sizes."""
        ...

    def tidy(self) -> None:
        """Remove the folders that were kept to be used again."""
        ...

    def sweep(self) -> None:
        """Remove what processes of this machine left that are dead."""
        ...


def open_workplace(prefix: str) -> Workplace:
    """The workplace of a store."""
    if not is_url(prefix):
        return LocalWorkplace(prefix)
    # fsspec takes a tenth of a second to load, which a local store need not wait for.
    from treadle.artifacts.remote_workplace import RemoteWorkplace

    return RemoteWorkplace()


class LocalWorkplace:
    """Folders of a local disk. One that was left empty is used again, since making folders takes time."""

    def __init__(self, prefix: str) -> None:
        self._inside = f"{prefix}/"
        self._work = join(prefix, OWN, "work")
        self._free: _Free = []

    def open(self, output_path: str) -> WorkFolder:
        """See `Workplace`."""
        if is_url(output_path):
            return open_workplace(output_path).open(output_path)
        if not output_path.startswith(self._inside):  # perhaps on another disk: a rename must do
            return _LocalFolder(_made(beside(output_path)), output_path, None)
        return _LocalFolder(self._take() or _made(join(self._work, _unique())), output_path, self._free)

    def _take(self) -> str | None:
        """A free folder of this process: a fork has those of its parent on its list."""
        while self._free:
            pid, path = self._free.pop()
            if pid == os.getpid():
                return path
        return None

    def stand(self, folder: str, files: Iterable[FileEntry]) -> bool:
        """See `Workplace`."""
        if is_url(folder):
            return open_workplace(folder).stand(folder, files)
        try:
            found = ((os.stat(join(folder, each.path)), each.bytes) for each in files)  # noqa: PTH116 - speed
            return all(stat.S_ISREG(each.st_mode) and each.st_size == size for each, size in found)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return False
            raise  # a store that cannot be looked at just now is no reason to build everything anew

    def tidy(self) -> None:
        """See `Workplace`."""
        while (path := self._take()) is not None:
            with contextlib.suppress(OSError):
                Path(path).rmdir()

    def sweep(self) -> None:
        """See `Workplace`."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # told by whoever needs the folder
            for left in Path(self._work).iterdir():
                if is_left(left.name):
                    shutil.rmtree(left, ignore_errors=True)


class _LocalFolder:
    """See `WorkFolder`. Left empty, it goes back to `free`."""

    location = ""

    def __init__(self, path: str, output_path: str, free: _Free | None) -> None:
        self.path = path
        self._output_path = output_path
        self._free = free
        self._filled: bool | None = None
        self._aside: str | None = None

    def files(self) -> tuple[FileEntry, ...]:
        try:
            with os.scandir(self.path) as entries:
                self._filled = next(entries, None) is not None
            links: list[str] = []
            found = sorted(walk(self.path, links=links)) if self._filled else ()
            for each in links:
                make_relative(self.path, each)
        except OSError as error:
            raise StepError(
                f"the output folder is gone after the step ran: {error}; "
                "a step may fill its folder, and must not remove or replace it"
            ) from error
        return tuple(synced_entry(self.path, path) for path in found)

    def publish(self) -> None:
        if os.path.lexists(self._output_path):
            self._aside = beside(self._output_path)
            Path(self._output_path).rename(self._aside)
        if self._filled:
            self._move()

    def close(self) -> None:
        if self._filled is False and self._free is not None:
            self._free.append((os.getpid(), self.path))
        else:
            _remove(self.path)
        if self._aside is not None:  # removing it takes its time, and nobody waits for it here
            _remove(self._aside)

    def _move(self) -> None:
        try:
            Path(self.path).rename(self._output_path)
        except FileNotFoundError:
            Path(self._output_path).parent.mkdir(parents=True, exist_ok=True)
            Path(self.path).rename(self._output_path)


def beside(path: str) -> str:
    """A hidden name in the same folder, that nothing has."""
    return str(Path(path).with_name(f".{Path(path).name}.{_unique()}"))


def _made(folder: str) -> str:
    Path(folder).mkdir(parents=True)
    return folder


def _remove(path: str) -> None:
    if is_folder(Path(path)):
        shutil.rmtree(path, ignore_errors=True)
    else:
        Path(path).unlink(missing_ok=True)


def _unique() -> str:
    """A name that tells which process it is of."""
    owner = this_owner("")
    return f"{owner.pid}-{owner.process_started}-{_digest(owner.machine)}-{uuid.uuid4().hex[:12]}"


def is_left(name: str) -> bool:
    """Whether what has this name is of a process that is known to be gone."""
    match = UNIQUE.fullmatch(name)
    me = this_owner("")
    if match is None or match["machine"] != _digest(me.machine):
        return False
    return is_gone(replace(me, pid=int(match["pid"]), process_started=int(match["started"])))


def _digest(machine: str) -> str:
    return f"{zlib.crc32(machine.encode()):08x}"
