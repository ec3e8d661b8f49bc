from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import ArtifactError
from treadle.storage import BadRow, Dataset, RowBatch, list_units, read_batches
from treadle.storage.formats.parquet import GROUP_ROWS, ParquetPart


def parquet_batches(
    path: Path, batch_rows: int = 1024, columns: tuple[str, ...] | None = None
) -> list[RowBatch]:
    dataset = Dataset("parquet", str(path), columns)
    [unit] = list_units(dataset)
    return list(read_batches(dataset, unit, batch_rows))


def write_part(path: Path, *tables: pa.Table) -> Path:
    part = ParquetPart(path, "zstd")
    for each in tables:
        part.write(each)
    part.close()
    return path


TABLE = pa.table({"id": range(5000), "text": [f"row {n * n}" for n in range(5000)]})


def test_batches_give_every_row_with_its_number(tmp_path: Path) -> None:
    batches = parquet_batches(write_part(tmp_path / "a.parquet", TABLE), 1500, ("text",))
    assert [each.rows.num_rows for each in batches] == [1500, 1500, 1500, 500]
    assert [line for each in batches for line in each.lines] == list(range(1, 5001))
    assert pa.Table.from_batches([each.rows for each in batches]).equals(TABLE.select(["text"]))


def test_declared_columns_come_in_their_order(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.parquet", TABLE)
    assert parquet_batches(path, columns=("text", "id"))[0].rows.schema.names == ["text", "id"]


def test_without_a_declared_column_every_row_is_bad(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.parquet", TABLE.slice(0, 3))
    batches = parquet_batches(path, 2, ("id", "words"))
    assert [each.num_rows for each in batches] == [0, 0]
    bad = [row for each in batches for row in each.bad]
    assert [(row.line, row.kind, row.raw) for row in bad] == [
        (line, "missing-column", b'{"id": %d}' % (line - 1)) for line in (1, 2, 3)
    ]
    assert {row.reason for row in bad} == {"column words: missing"}


def test_a_missing_column_is_null_where_that_is_wanted(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.parquet", TABLE.slice(0, 3))
    columns = ("words", "id", "size")
    dataset = Dataset("parquet", str(path), columns, types={"size": "int64"}, missing="null")
    [batch] = read_batches(dataset, list_units(dataset)[0])
    assert batch.rows.schema.types == [pa.null(), pa.int64(), pa.int64()]
    assert batch.rows.to_pylist() == [{"words": None, "id": number, "size": None} for number in range(3)]


def test_of_a_file_with_no_declared_column_every_row_is_told(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.parquet", TABLE.slice(0, 3))
    [batch] = parquet_batches(path, columns=("words",))
    assert [row.raw for row in batch.bad] == [b"{}"] * 3


@pytest.mark.parametrize(
    ("values", "kind", "kept"),
    [
        (pa.array([1.0, 2.5, None]), "int64", {0: 1, 2: None}),
        (pa.array([1, 2**53 + 1]), "float64", {0: 1.0}),
        (pa.array([2**63, 5], pa.uint64()), "int64", {1: 5}),
        (pa.array(["1", None]), "int64", {1: None}),
        (pa.array([1, None]), "string", {1: None}),
        (pa.array([0, None]), "bool", {1: None}),
        (pa.array([float("nan"), 4.0]), "int64", {1: 4}),
        (pa.array(["a", "b"], pa.large_string()), "string", {0: "a", 1: "b"}),
        (pa.array(["a", None]).dictionary_encode(), "string", {0: "a", 1: None}),
        (pa.array([None, None]), "string", {0: None, 1: None}),
    ],
)
def test_a_declared_type_is_met_exactly_or_the_row_is_bad(
    tmp_path: Path, values: pa.Array[Any], kind: str, kept: dict[int, object]
) -> None:
    table = pa.table({"at": pa.array(range(len(values))), "x": values})
    path = write_part(tmp_path / "a.parquet", table)
    dataset = Dataset("parquet", str(path), types={"x": kind})
    [batch] = read_batches(dataset, list_units(dataset)[0])
    assert str(batch.rows.schema.field("x").type).replace("double", "float64") == kind
    assert {row["at"]: row["x"] for row in batch.records} == kept
    assert [line - 1 for line in batch.lines] == list(kept)
    assert [row.line - 1 for row in batch.bad] == [at for at in range(len(values)) if at not in kept]
    assert {row.kind for row in batch.bad} <= {"wrong-type"}


def test_a_row_of_a_wrong_type_is_told_with_what_it_holds(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.parquet", pa.table({"x": ["one", None]}))
    dataset = Dataset("parquet", str(path), types={"x": "int64"})
    [batch] = read_batches(dataset, list_units(dataset)[0])
    assert batch.bad == (
        BadRow(
            str(path),
            1,
            "column x: expected int64, found string 'one'",
            b'{"x": "one"}',
            None,
            "wrong-type",
        ),
    )


def read_units(dataset: Dataset, batch_rows: int = 1024) -> tuple[pa.Table, list[int]]:
    batches = [each for unit in list_units(dataset) for each in read_batches(dataset, unit, batch_rows)]
    assert [row for each in batches for row in each.bad] == []
    return pa.Table.from_batches([each.rows for each in batches]), [n for each in batches for n in each.lines]


@settings(max_examples=25)
@given(split_bytes=st.integers(1, 60_000), batch_rows=st.integers(1, 3000))
def test_the_parts_of_a_file_are_together_the_file(
    tmp_path_factory: pytest.TempPathFactory, split_bytes: int, batch_rows: int
) -> None:
    path = tmp_path_factory.mktemp("split") / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=700)
    dataset = Dataset("parquet", str(path), split_bytes=split_bytes)
    units = list_units(dataset)
    rows, lines = read_units(dataset, batch_rows)
    assert rows.equals(TABLE)
    assert lines == list(range(1, 5001))
    assert len(units) == 1 or all(unit.part is not None for unit in units)
    assert sum(unit.bytes for unit in units) <= path.stat().st_size
    assert (len(units) > 1) == (path.stat().st_size > split_bytes)


def test_a_damaged_file_is_not_split_and_told_once(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.parquet", TABLE)
    path.write_bytes(path.read_bytes()[:-1])
    dataset = Dataset("parquet", str(path), split_bytes=1)
    [unit] = list_units(dataset)
    [batch] = read_batches(dataset, unit)
    assert [row.kind for row in batch.bad] == ["damaged-file"]


def test_records_are_written_as_the_table_they_make(tmp_path: Path) -> None:
    """Whole numbers may become fractions and new columns come, as between tables."""
    part = ParquetPart(tmp_path / "a.parquet", "zstd")
    part.write([{"id": 1}, {"id": 2, "text": "x"}])
    part.write([{"id": 0.5}])
    assert list(zip(part.schema.names, part.schema.types, strict=True)) == [
        ("id", pa.float64()),
        ("text", pa.string()),
    ]
    with pytest.raises(pa.ArrowException, match="id"):
        part.write([{"id": "one"}])
    with pytest.raises(ValueError, match="row 1: column id: expected int64, found a string 'one'"):
        part.write([{"id": 1}, {"id": "one"}])
    part.close()
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [
        {"id": 1.0, "text": None},
        {"id": 2.0, "text": "x"},
        {"id": 0.5, "text": None},
    ]


def test_rows_without_columns_are_not_lost(tmp_path: Path) -> None:
    part = ParquetPart(tmp_path / "a.parquet", "zstd")
    with pytest.raises(ValueError, match="rows without any column: parquet cannot hold them"):
        part.write([{}, {}])
    part.write([{"id": 1}])
    part.write([{}, {}])
    part.close()
    [batch] = parquet_batches(tmp_path / "a.parquet")
    assert batch.records == [{"id": 1}, {"id": None}, {"id": None}]


def test_a_file_without_rows_still_tells_its_columns(tmp_path: Path) -> None:
    [batch] = parquet_batches(write_part(tmp_path / "a.parquet", TABLE.slice(0, 0)))
    assert (list(batch.lines), batch.bad) == ([], ())
    assert batch.rows.schema == TABLE.schema


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_part(tmp_path_factory.mktemp("whole") / "a.parquet", TABLE)


@settings(max_examples=40)
@given(data=st.data())
def test_a_cut_file_is_one_bad_row_and_no_row_is_invented(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut") / "a.parquet"
    content = whole.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    [batch] = parquet_batches(path)
    assert batch.rows.num_rows == 0
    [bad] = batch.bad
    assert (bad.source, bad.line, bad.kind) == (str(path), 0, "damaged-file")
    assert bad.reason.startswith("not a whole parquet file, 0 rows could be read: ")


@settings(max_examples=40)
@given(data=st.data())
def test_a_flipped_byte_in_the_rows_is_found(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Without check sums a damaged page can be read as other rows."""
    group = pq.read_metadata(whole).row_group(0)
    size = sum(group.column(index).total_compressed_size for index in range(group.num_columns))
    place = data.draw(st.integers(4, 3 + size))
    damaged = bytearray(whole.read_bytes())
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("flip") / "a.parquet"
    path.write_bytes(damaged)
    batches = parquet_batches(path)
    rows = pa.Table.from_batches(
        [each.rows for each in batches if each.lines] or [TABLE.to_batches()[0].slice(0, 0)]
    )
    assert rows.equals(TABLE.slice(0, rows.num_rows))
    assert rows.num_rows == TABLE.num_rows or [bad.line for each in batches for bad in each.bad] == [0]


def test_text_that_is_not_utf8_costs_its_row_only(tmp_path: Path) -> None:
    """Parquet files of other writers hold such bytes; the rows around them are as good as any."""
    text = pa.array([b"fine", b"\xff", b"as well", b"later"]).cast(pa.binary()).view(pa.string())
    pq.write_table(pa.table({"id": range(4), "text": text}), tmp_path / "a.parquet")
    batches = parquet_batches(tmp_path / "a.parquet", 3)
    assert [each.rows.to_pydict() for each in batches] == [
        {"id": [0, 2], "text": ["fine", "as well"]},
        {"id": [3], "text": ["later"]},
    ]
    assert [list(each.lines) for each in batches] == [[1, 3], [4]]
    [bad] = batches[0].bad
    assert (bad.line, batches[1].bad) == (2, ())
    assert "column text" in bad.reason
    assert "UTF8" in bad.reason


def test_a_file_that_is_not_there_is_an_error_not_a_bad_row(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.parquet", TABLE)
    [unit] = list_units(Dataset("parquet", str(path)))
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(read_batches(Dataset("parquet", str(path)), unit))


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5000), max_size=6).map(sorted))
def test_the_bytes_do_not_depend_on_how_the_rows_were_cut(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("cuts")
    bounds = list(zip([0, *cuts], [*cuts, 5000], strict=True))
    pieces = [TABLE.slice(start, end - start) for start, end in bounds]
    whole = write_part(folder / "whole.parquet", TABLE)
    assert write_part(folder / "cut.parquet", *pieces).read_bytes() == whole.read_bytes()


def test_a_schema_may_widen_after_a_row_group_was_written(tmp_path: Path) -> None:
    """A column of nulls for a million rows gets its type late; the file must take it, in bounded memory."""
    nulls = pa.table({"id": pa.array(range(GROUP_ROWS)), "late": pa.nulls(GROUP_ROWS)})
    path = write_part(
        tmp_path / "a.parquet", nulls, nulls, pa.table({"id": [0.5], "late": ["x"], "new": [True]})
    )
    rows = pq.read_table(path)
    assert rows.schema.types == [pa.float64(), pa.string(), pa.bool_()]
    assert rows.num_rows == 2 * GROUP_ROWS + 1
    assert rows.slice(2 * GROUP_ROWS - 1).to_pylist() == [
        {"id": GROUP_ROWS - 1, "late": None, "new": None},
        {"id": 0.5, "late": "x", "new": True},
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]


def test_long_rows_make_small_row_groups(tmp_path: Path) -> None:
    """What waits to be written is bounded in bytes, not only in rows."""
    long = pa.table({"text": ["x" * 2**20] * 10})
    path = write_part(tmp_path / "a.parquet", long, long, long)
    assert pq.read_metadata(path).num_row_groups == 2


def test_a_column_that_appears_twice_is_refused_where_it_is_read(tmp_path: Path) -> None:
    """Nobody could say which of the two is meant; a column that nobody reads harms nobody."""
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ArtifactError, match="column 'a' appears 2 times"):
        parquet_batches(tmp_path / "a.parquet")
    [batch] = parquet_batches(tmp_path / "a.parquet", columns=("b", "b"))
    assert batch.rows.to_pydict() == {"b": [3]}


def test_batches_beyond_any_number_of_rows(tmp_path: Path) -> None:
    """A manifest may say any whole number; Arrow takes those of 64 bits only."""
    [batch] = parquet_batches(write_part(tmp_path / "a.parquet", TABLE), 10**30)
    assert batch.rows.num_rows == 5000
