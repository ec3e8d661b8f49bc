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
from treadle.storage.ledger.sqlite_errors import FROM_SQLITE, is_busy, is_refused, ledger_error

_PATIENCE = 30.0
_OLDEST_SQLITE = (3, 35)


class Database:
    """Use as a `with` block to write: it gives the connection, and rolls back what did not commit.

    Raises LedgerError for everything that SQLite raises, ArtifactError for a file of a newer format.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] = (0, 0)
        self._is_brief = False

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
            if self._is_brief:
                self.close()
        finally:
            self.lock.release()
        if isinstance(error, FROM_SQLITE):
            raise ledger_error(self.path, error) from error

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
                self._is_brief = False

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
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            return self._connected_in_time()
        except FROM_SQLITE as error:
            raise ledger_error(self.path, error) from error
        except OSError as error:
            raise LedgerError(
                f"{self.path}: cannot make the ledger of the store: {error}; "
                "allow this user to write there, or choose another prefix"
            ) from error

    def _connected_in_time(self) -> sqlite3.Connection:
        """Try for a while: when another process is making the file, SQLite refuses without waiting."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._connected()
            except sqlite3.OperationalError as error:
                if is_refused(error) and self._is_at_rest():
                    return self._connected_to_read()
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

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

    def _is_at_rest(self) -> bool:
        """Whether nobody has the file open: the last one to close it folds the log in and removes it."""
        return Path(self.path).exists() and not Path(f"{self.path}-wal").exists()

    def _connected_to_read(self) -> sqlite3.Connection:
        """In a folder in which nothing can be made, also not what WAL mode needs beside the file.

        It is read without locks, so the connection is closed again after each use: a writer may come.
        """
        uri = f"{Path(self.path).as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, isolation_level=None, check_same_thread=False, uri=True)
        try:
            self._check_format(connection)
            self._identity = self._found()
        except BaseException:
            connection.close()
            raise
        self._is_brief = True
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
