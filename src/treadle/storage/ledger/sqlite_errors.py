"""What SQLite raises, as a LedgerError that says what to do."""

from __future__ import annotations

import sqlite3

from treadle.errors import LedgerError

FROM_SQLITE = (sqlite3.Error, UnicodeDecodeError)
"""A message of SQLite may quote what stands in a damaged file, and then cannot be decoded."""

_NOT_WRITABLE = "allow this user to write there, or choose another prefix"
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process holds the write lock; if it is paused, end it, then run again",
    sqlite3.SQLITE_FULL: "the disk is full; free some space, then run again",
    sqlite3.SQLITE_IOERR: "see that the disk has space left and is in order, then run again",
    sqlite3.SQLITE_READONLY: _NOT_WRITABLE,
    sqlite3.SQLITE_CANTOPEN: _NOT_WRITABLE,
    sqlite3.SQLITE_PERM: _NOT_WRITABLE,
}
_DAMAGED = (
    "the file is damaged; put a copy from before in its place, or move it away with its -wal and -shm files: "
    "every step will then run again"
)


def ledger_error(path: str, error: Exception) -> LedgerError:
    """The error to raise instead of `error`, one of `FROM_SQLITE`, about the file at `path`."""
    remedy = _REMEDIES.get(_code(error), _DAMAGED if _is_damage(error) else "run again")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return LedgerError(f"{path}: cannot use the ledger of the store: {error} ({name}); {remedy}")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process has the file locked."""
    return _code(error) == sqlite3.SQLITE_BUSY


def is_refused(error: sqlite3.Error) -> bool:
    """Whether this user may not write where the file is."""
    return _code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _code(error: Exception) -> int:
    """The primary code, without the details that SQLite puts into the higher bits."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _is_damage(error: Exception) -> bool:
    if isinstance(error, UnicodeDecodeError):
        return True
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "UTF-8" in str(error)
