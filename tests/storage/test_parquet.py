from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import ArtifactError
from treadle.storage import Dataset, RowBatch, list_units, read_batches
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


def test_declared_columns_come_in_their_order_and_a_missing_one_is_named(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.parquet", TABLE)
    assert parquet_batches(path, columns=("text", "id"))[0].rows.schema.names == ["text", "id"]
    with pytest.raises(ArtifactError) as caught:
        parquet_batches(path, columns=("id", "words"))
    assert str(caught.value) == f"{path}: column 'words' is missing; the file has: id, text"


def test_a_file_without_rows_still_tells_its_columns(tmp_path: Path) -> None:
    [batch] = parquet_batches(write_part(tmp_path / "a.parquet", TABLE.slice(0, 0)))
    assert (batch.lines, batch.bad) == ((), ())
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
    assert (bad.source, bad.line) == (str(path), 0)
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
    assert [each.lines for each in batches] == [(1, 3), (4,)]
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
    long = pa.table({"text": ["x" * 2**20] * 40})
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
