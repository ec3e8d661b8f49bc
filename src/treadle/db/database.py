"""One connection to a PostgreSQL server.

Every failure is a DatabaseError that names the server and what it said; a password is never shown. A
statement is text that the room above wrote, with `%s` where its values go: values never become part of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from treadle.db.url import check_url, shown_url
from treadle.errors import DatabaseError
from treadle.extras import check_extra

if TYPE_CHECKING:
    import psycopg

_CONNECT_SECONDS = 10
"""How long a server that does not answer is waited for; `connect_timeout` in the URL wins."""


@dataclass(frozen=True)
class Column:
    """A column of a result: its name, and the number (OID) that the server has for its type."""

    name: str
    oid: int


class Database:
    """A connection, open inside its `with` block. For one thread at a time.

    Outside of `transaction` each statement stands by itself.

    Raises:
        ArgumentError: the URL has another form.
        MissingExtraError: psycopg is not installed.
        DatabaseError: the server cannot be reached, or refuses the connection.
    """

    def __init__(self, url: str) -> None:
        check_url(url)
        check_extra("postgres", "a PostgreSQL table", "psycopg")
        self.url = url
        self._connection = self._connect()

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement gives, none for one that gives none. Raises DatabaseError."""
        with self._told(statement), self._connection.cursor() as cursor:
            cursor.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description is not None else []

    def describe(self, query: str) -> tuple[Column, ...]:
        """The columns of what a query gives. Raises DatabaseError."""
        with self._told(query), self._connection.cursor() as cursor:
            cursor.execute(query.encode())
            return tuple(Column(each.name, each.type_code) for each in cursor.description or ())

    def copy_out(self, statement: str, columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
        """The rows that a binary COPY TO STDOUT gives, all of one moment. Raises DatabaseError."""
        with self._copying(statement) as copy:
            copy.set_types([each.oid for each in columns])
            yield from copy.rows()

    def copy_in(self, statement: str, kinds: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Give rows to a binary COPY FROM STDIN; `kinds` are the names of the types of its columns.

        Returns how many rows there were. Raises DatabaseError; then none of them is there.
        """
        count = 0
        with self._copying(statement) as copy:
            copy.set_types(kinds)
            for row in rows:
                copy.write_row(row)
                count += 1
        return count

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block whose statements count all together, or not at all when it is left by an error."""
        with self._told("COMMIT"), self._connection.transaction():
            yield

    def close(self) -> None:
        """Close the connection; harmless the second time."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _copying(self, statement: str) -> Iterator[psycopg.Copy]:
        with (
            self._told(statement),
            self._connection.cursor() as cursor,
            cursor.copy(statement.encode()) as copy,
        ):
            yield copy

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        driver = importlib.import_module("psycopg")
        timeout = {} if "connect_timeout=" in self.url else {"connect_timeout": _CONNECT_SECONDS}
        with self._told("connect"):
            opened: psycopg.Connection[tuple[Any, ...]] = driver.connect(
                self.url, autocommit=True, application_name="treadle", **timeout
            )
        return opened

    @contextmanager
    def _told(self, statement: str) -> Iterator[None]:
        """Say of an error of the block where it was, and at which statement."""
        driver = importlib.import_module("psycopg")
        try:
            yield
        except driver.Error as error:
            first = statement.split("\n", 1)[0][:200]
            raise DatabaseError(shown_url(self.url), first, str(error).strip()) from error
