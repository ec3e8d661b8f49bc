"""Locks of this machine's processes, which end with the process that holds them, and hidden folders that live
as long as their writer.

A lock is a file that is locked by flock and removed when it is let go, so that nothing stays behind; a killed
owner leaves the file, which the next one takes over.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treadle.storage.atomic import remove, staging_path


class FileLock:
    """The lock at `path`; not for several threads, each makes its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self, *, wait: bool = True) -> bool:
        """Take it, waiting for who has it; without `wait`, False when somebody has it. Raises OSError."""
        while True:
            handle = self._opened()
            if handle is None:
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                if _is_at(handle, self._path):
                    self._handle = handle
                    return True
            except BlockingIOError:
                os.close(handle)
                return False
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # who had it removed the file, and the next makes another

    def release(self) -> None:
        """Let go of it, and remove its file; nothing when it is not held."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            try:
                if _is_at(handle, self._path):  # else its folder has another name now
                    self._path.unlink(missing_ok=True)
            finally:
                os.close(handle)

    def sign(self) -> None:
        """Write the number of this process into the file of the lock, which it holds. Raises OSError."""
        if self._handle is not None:
            os.truncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def owner(self) -> str:
        """The number of the process that has signed it; "unknown" when that cannot be told."""
        try:
            return self._path.read_text("ascii", "replace").strip() or "unknown"
        except OSError:
            return "unknown"

    def _opened(self) -> int | None:
        """The file; None when who had the lock has just taken the folder away with it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            if os.path.lexists(self._path):  # a link to nowhere
                raise
            return None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock at `path`, waiting for it."""
    lock = FileLock(path)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


class LiveFolder:
    """A fresh hidden name beside `target`, as of `staging_path`, and a lock that says its writer lives."""

    def __init__(self, target: Path) -> None:
        self.path = staging_path(target)
        self._lock = FileLock(_lock_of(self.path))

    def claim(self) -> None:
        """Say that the writer lives, before the folder is made."""
        self._lock.acquire()

    def release(self) -> None:
        """The folder is gone or has another name."""
        self._lock.release()
        # Nobody else has this name, so the file is ours also where an interrupt has torn `claim`.
        remove(_lock_of(self.path))


def clear_dead(target: Path) -> bool:
    """Remove what writers of `target` left beside it that are dead, or say nothing of their life.

    Returns whether none lives.
    """
    prefix = f".{target.name}.staging-"
    if not target.parent.is_dir():
        return True
    found = {
        each.name.removesuffix(".lock") for each in target.parent.iterdir() if each.name.startswith(prefix)
    }
    alive = [each for each in sorted(found) if not _clear(target.with_name(each))]
    return not alive


def _clear(folder: Path) -> bool:
    if not _lock_of(folder).exists():  # whoever claims a folder does so before it is made
        remove(folder)
        return True
    lock = FileLock(_lock_of(folder))
    if not lock.acquire(wait=False):
        return False
    try:
        remove(folder)
    finally:
        lock.release()
    return True


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one at `path`: who had it locked may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
