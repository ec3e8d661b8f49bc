"""One SQLite file, opened when it is first needed, shared by the threads of a process under a lock.

In WAL mode readers never wait, and a commit costs no sync of the disk: a loss of power may take the last
commits back, but never tears the file.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from treadle.errors import LedgerError
from treadle.storage.ledger import schema
from treadle.storage.ledger.messages import newer_format

_PATIENCE = 30.0
_OLDEST_SQLITE = (3, 35)
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process holds the write lock; if it is paused, end it, then run again",
    sqlite3.SQLITE_FULL: "the disk is full; free some space, then run again",
    sqlite3.SQLITE_IOERR: "see that the disk has space left and is in order, then run again",
    sqlite3.SQLITE_READONLY: "allow this user to write there, or choose another prefix",
    sqlite3.SQLITE_CANTOPEN: "allow this user to write there, or choose another prefix",
    sqlite3.SQLITE_PERM: "allow this user to write there, or choose another prefix",
}
# A message of SQLite may quote what stands in a damaged file, and then cannot be decoded.
_SQLITE = (sqlite3.Error, UnicodeDecodeError)
_DAMAGED = (
    "the file is damaged; put a copy from before in its place, or move it away with its -wal and -shm files: "
    "every step will then run again"
)


class Database:
    """Use as a `with` block to write: it gives the connection, and rolls back what did not commit.

    Raises LedgerError for everything that SQLite raises, ArtifactError for a file of a newer format.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] = (0, 0)

    def __enter__(self) -> sqlite3.Connection:
        self.lock.acquire()
        try:
            return self._ready()
        except BaseException:
            self.lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self._roll_back()
        finally:
            self.lock.release()
        if isinstance(error, _SQLITE):
            raise self._translated(error) from error

    @contextmanager
    def impatient(self, patience: float) -> Iterator[sqlite3.Connection]:
        """As the `with` block itself, but wait no longer than so many seconds for other processes."""
        with self as connection:
            connection.execute(f"PRAGMA busy_timeout = {max(1, int(patience * 1000))}")
            try:
                yield connection
            finally:
                connection.execute(f"PRAGMA busy_timeout = {int(_PATIENCE * 1000)}")

    def read(self, statement: str, parameters: Sequence[object]) -> list[Any]:
        """The rows; none when there is no file yet, and none is made then."""
        if self._connection is None and not Path(self.path).exists():
            return []
        with self as connection:
            return connection.execute(statement, parameters).fetchall()

    def write_all(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """The statement for every row, in one transaction."""
        with self as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, rows)
            connection.execute("COMMIT")

    def is_present(self) -> bool:
        """Whether the file is there still, or was never opened."""
        return self._connection is None or self._found() == self._identity

    def close(self) -> None:
        """Close the file; it opens again when needed."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def reset(self) -> None:
        """In a forked child: leave the connection to the parent."""
        if self._connection is not None:
            # Closing it, even by the garbage collector, could touch the files under the parent.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._connection = None
        self.lock = threading.RLock()

    def _ready(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._opened()
        elif self._found() != self._identity:
            self.close()
            raise LedgerError(
                f"{self.path}: the store is gone: this file was deleted or replaced while in use; run again"
            )
        return self._connection

    def _found(self) -> tuple[int, int]:
        try:
            status = os.stat(self.path)  # noqa: PTH116 - on the path of every claim, and pathlib takes twice as long
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    def _opened(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise LedgerError(
                f"{self.path}: the ledger needs SQLite 3.35 or newer; "
                f"this Python has {sqlite3.sqlite_version}: use another one"
            )
        deadline = time.monotonic() + _PATIENCE
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            while True:
                try:
                    return self._connected()
                except sqlite3.OperationalError as error:
                    # While another process makes the file, SQLite refuses without waiting.
                    if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                        raise
                time.sleep(0.01)
        except _SQLITE as error:
            raise self._translated(error) from error
        except OSError as error:
            raise LedgerError(
                f"{self.path}: cannot make the ledger of the store: {error}; "
                "allow this user to write there, or choose another prefix"
            ) from error

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            # 16 MB, four times the default: the log is folded in, with a sync of the disk, less often, which
            # takes a third off the mean time of a claim and a commit.
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            self._check_format(connection)
            self._identity = self._found()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_format(self, connection: sqlite3.Connection) -> None:
        if not connection.execute(schema.HAS_TABLES).fetchone()[0]:
            connection.executescript(f"BEGIN IMMEDIATE; {schema.TABLES} COMMIT;")
        (found,) = connection.execute(schema.FORMAT_OF_FILE).fetchone() or ("none",)
        if found != str(schema.FORMAT):
            raise newer_format(self.path, found, schema.FORMAT)

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _translated(self, error: Exception) -> LedgerError:
        remedy = _REMEDIES.get(_primary(error), _DAMAGED if _is_damage(error) else "run again")
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        return LedgerError(f"{self.path}: cannot use the ledger of the store: {error} ({name}); {remedy}")


def _primary(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _is_damage(error: Exception) -> bool:
    if isinstance(error, UnicodeDecodeError):
        return True
    return _primary(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "UTF-8" in str(error)
