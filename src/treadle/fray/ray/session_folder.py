"""The folder in which a cluster of this machine keeps its sockets, logs and spilled objects."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_MARK, _OWNED = "treadle-ray-", "owned"


class SessionFolder:
    """A new folder, which is this process's until it is removed.

    Those of processes that were killed are removed first: who is alive holds a lock in its own.
    """

    def __init__(self) -> None:
        base = _base()
        for each in base.glob(f"{_MARK}*"):
            _remove_abandoned(each)
        self.path = tempfile.mkdtemp(prefix=_MARK, dir=base)
        self._lock = os.open(Path(self.path, _OWNED), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Its cluster has ended."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_abandoned(folder: Path) -> None:
    with suppress(OSError):  # of another user, new, or removed by somebody else
        lock = os.open(folder / _OWNED, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _base() -> Path:
    """Sockets lie below it, whose paths may have 107 bytes."""
    usual = tempfile.gettempdir()
    return Path(usual if len(usual) < 18 else "/tmp")  # noqa: S108 - a folder of our own is made in it
