"""Tables of a real PostgreSQL server as inputs and outputs."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from treadle.db import Database
from treadle.errors import ArgumentError, ArtifactError, DatabaseError, RunError, UnknownNameError
from treadle.storage import Dataset, OutputSpec, Session, WorkUnit, list_units, read_batches

UNIT = WorkUnit("00000-all", 0, "", 0)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "Name of it": ["naïve \n,\"'\\", "", None],
        "score": pa.array([0.1, float("nan"), None], pa.float64()),
        "good": [True, False, None],
        "at": pa.array([NOON, None, NOON], pa.timestamp("us", "UTC")),
        "day": pa.array([date(2026, 1, 2), None, date(1, 1, 1)], pa.date32()),
        "raw": [b"\x00\xff", b"", None],
        "tokens": [["a", None], [], None],
        "deep": [{"a": [1, 2], "b": "x"}, {"a": [], "b": None}, None],
    }
)


@pytest.fixture
def schema(postgres: str) -> Iterator[str]:
    """A schema of the test's own."""
    with Database(postgres) as database:
        database.execute("CREATE SCHEMA test")
        yield "test"
        database.execute("DROP SCHEMA test CASCADE")


def write(url: str, table: str, rows: pa.Table, mode: str = "error", units: int = 1) -> None:
    spec = OutputSpec("postgres", url, mode=mode, options={"table": table})  # type: ignore[arg-type]
    with Session({"rows": spec}) as session:
        for index in range(units):
            session.write("rows", WorkUnit(f"{index:05d}-part", index, "", 0), rows)
        session.commit()


def read(url: str, table: str, batch_rows: int = 1000, **more: object) -> pa.Table:
    dataset = Dataset("postgres", url, options={"table": table}, **more)  # type: ignore[arg-type]
    (unit,) = list_units(dataset)
    batches = list(read_batches(dataset, unit, batch_rows))
    assert not any(each.bad for each in batches)
    lines = [line for each in batches for line in each.lines]
    assert lines == list(range(1, len(lines) + 1))
    return pa.Table.from_batches([each.rows for each in batches])


def test_what_is_written_is_read_again(postgres: str, schema: str) -> None:
    write(postgres, f"{schema}.things", ROWS)
    found = read(postgres, f"{schema}.things", batch_rows=2)
    assert str(found.drop(["deep"]).to_pylist()) == str(ROWS.drop(["deep"]).to_pylist())
    assert found["deep"].to_pylist() == ['{"a": [1, 2], "b": "x"}', '{"a": [], "b": null}', None]


def test_the_units_come_in_their_order(postgres: str, schema: str) -> None:
    write(postgres, f"{schema}.things", ROWS.select(["id"]), units=3)
    assert read(postgres, f"{schema}.things")["id"].to_pylist() == [1, 2, None] * 3


def test_columns_and_types_are_chosen(postgres: str, schema: str) -> None:
    write(postgres, f"{schema}.things", ROWS)
    found = read(postgres, f"{schema}.things", columns=("good", "id"), types={"id": "string"})
    assert found.to_pydict() == {"good": [True, False, None], "id": ["1", "2", None]}


def test_types_that_have_no_like_come_as_text(postgres: str, schema: str) -> None:
    with Database(postgres) as database:
        database.execute("CREATE TABLE test.odd (n numeric, u uuid, j jsonb, i interval, e inet)")
        database.execute(
            "INSERT INTO test.odd VALUES (%s, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{}', '1 day', '::1')",
            (Decimal("1e30"),),
        )
    assert read(postgres, "test.odd").to_pylist() == [
        {
            "n": "1" + "0" * 30,
            "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "j": "{}",
            "i": "1 day",
            "e": "::1/128",
        }
    ]


def test_a_query_is_read(postgres: str) -> None:
    dataset = Dataset(
        "postgres", postgres, options={"query": "SELECT n, n * n AS square FROM generate_series(1, 3) n;"}
    )
    (unit,) = list_units(dataset)
    (batch,) = read_batches(dataset, unit)
    assert batch.rows.to_pydict() == {"n": [1, 2, 3], "square": [1, 4, 9]}


def test_a_table_that_is_there_is_never_overwritten_by_default(postgres: str, schema: str) -> None:
    write(postgres, f"{schema}.things", ROWS)
    with pytest.raises(ArtifactError, match="mode: overwrite or append"):
        Session({"rows": OutputSpec("postgres", postgres, options={"table": f"{schema}.things"})})


def test_overwrite_replaces_and_append_adds(postgres: str, schema: str) -> None:
    one = pa.table({"id": [1]})
    write(postgres, f"{schema}.things", ROWS)
    write(postgres, f"{schema}.things", one, "overwrite")
    write(postgres, f"{schema}.things", one, "append")
    assert read(postgres, f"{schema}.things").to_pydict() == {"id": [1, 1]}


def test_a_load_that_fails_leaves_the_old_table(postgres: str, schema: str) -> None:
    write(postgres, f"{schema}.things", pa.table({"id": [1]}))
    with pytest.raises(DatabaseError, match="0x00"):
        write(postgres, f"{schema}.things", pa.table({"text": ["good", "b\0d"]}), "overwrite")
    assert read(postgres, f"{schema}.things").to_pydict() == {"id": [1]}


def test_a_run_that_fails_leaves_no_table(postgres: str, schema: str) -> None:
    spec = OutputSpec("postgres", postgres, options={"table": f"{schema}.things"})
    with pytest.raises(KeyError), Session({"rows": spec}) as session:
        session.write("rows", UNIT, ROWS)
        raise KeyError
    with Database(postgres) as database:
        assert database.execute("SELECT to_regclass('test.things')") == [(None,)]


def test_a_name_is_never_a_statement(postgres: str, schema: str) -> None:
    evil = 'x"; DROP SCHEMA test CASCADE; --'
    write(postgres, f"{schema}.{evil}", pa.table({evil: [1]}))
    assert read(postgres, f"{schema}.{evil}").to_pydict() == {evil: [1]}


def test_what_is_unknown_is_named(postgres: str, schema: str) -> None:
    write(postgres, f"{schema}.things", ROWS)
    with pytest.raises(UnknownNameError, match="did you mean 'score'"):
        list_units(Dataset("postgres", postgres, columns=("scor",), options={"table": f"{schema}.things"}))
    with pytest.raises(DatabaseError, match="does not exist"):
        list_units(Dataset("postgres", postgres, options={"table": f"{schema}.nothing"}))
    with pytest.raises(ArgumentError, match="one of the options table and query"):
        list_units(Dataset("postgres", postgres))


def test_two_columns_of_one_name_are_refused(postgres: str) -> None:
    with pytest.raises(ArgumentError, match="'n' more than once"):
        list_units(Dataset("postgres", postgres, options={"query": "SELECT 1 AS n, 2 AS n"}))


def test_a_type_without_a_like_is_refused_by_column(postgres: str, schema: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"column span: .* has no type in PostgreSQL"):
        write(postgres, f"{schema}.things", pa.table({"span": pa.array([1], pa.duration("s"))}))
