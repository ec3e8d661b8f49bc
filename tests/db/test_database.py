"""Statements, COPY and transactions on a real server."""

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from treadle.db import Database, shown_url
from treadle.errors import ArgumentError, DatabaseError


@pytest.fixture
def database(postgres: str) -> Iterator[Database]:
    with Database(postgres) as opened:
        opened.execute("CREATE TABLE things (name text, sizes bigint[], at timestamptz)")
        yield opened
    with Database(postgres) as opened:
        opened.execute("DROP TABLE things")


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
INTO = "COPY things (name, sizes, at) FROM STDIN (FORMAT binary)"
KINDS = ("text", "int8[]", "timestamptz")
ROWS = [("one", [1, 2], NOON), (None, None, None), ("", [], NOON), ("naïve \n,\"'\\", [-(2**63)], NOON)]


def test_what_is_copied_in_comes_out_again(database: Database) -> None:
    assert database.copy_in(INTO, KINDS, ROWS) == len(ROWS)
    columns = database.describe("SELECT * FROM things LIMIT 0")
    assert [each.name for each in columns] == ["name", "sizes", "at"]
    copied = list(database.copy_out("COPY things TO STDOUT (FORMAT binary)", columns))
    assert copied == ROWS


def test_values_are_not_part_of_the_statement(database: Database) -> None:
    name = "'); DROP TABLE things; --"
    database.execute("INSERT INTO things (name) VALUES (%s)", (name,))
    assert database.execute("SELECT name FROM things") == [(name,)]


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    with pytest.raises(KeyError), database.transaction():
        database.copy_in(INTO, KINDS, ROWS)
        raise KeyError
    assert database.execute("SELECT count(*) FROM things") == [(0,)]


def test_rows_that_end_in_an_error_are_not_there(database: Database) -> None:
    def rows() -> Iterator[tuple[object, ...]]:
        yield ROWS[0]
        raise KeyError("the source of the rows failed")

    with pytest.raises(KeyError, match="the source"):
        database.copy_in(INTO, KINDS, rows())
    assert database.execute("SELECT count(*) FROM things") == [(0,)]


def test_a_refused_statement_names_the_server_and_the_reason(database: Database) -> None:
    with pytest.raises(
        DatabaseError, match=r"postgresql://postgres@127.0.0.1:\d+/postgres: SELECT nope: column"
    ):
        database.execute("SELECT nope")
    assert database.execute("SELECT 1") == [(1,)]


def test_an_error_travels_between_processes(database: Database) -> None:
    with pytest.raises(DatabaseError) as caught:
        database.execute("SELECT nope")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with pytest.raises(DatabaseError, match=r"127\.0\.0\.1") as caught:
        Database("postgresql://me:hunter2@127.0.0.1:1/things")
    assert "hunter2" not in str(caught.value)
    assert "me:***@127.0.0.1:1" in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://here/things", "things", "", "postgresql:things"])
def test_a_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(ArgumentError, match="postgresql://user@host:5432/database"):
        Database(url)


def test_no_password_is_shown() -> None:
    assert shown_url("postgresql://me:pw@host/d?sslmode=require&password=pw") == (
        "postgresql://me:***@host/d?sslmode=require&password=***"
    )
    assert shown_url("postgresql:///d") == "postgresql:///d"
