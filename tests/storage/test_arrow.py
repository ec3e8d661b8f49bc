from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import ArtifactError
from treadle.storage import Dataset, RowBatch, list_units, read_batches
from treadle.storage.formats.arrow import (
    BATCH_ROWS,
    ArrowPart,
    count_arrow_batches,
    read_arrow_batches,
)

TABLE = pa.table({"id": range(3000), "text": [f"row {n * n}" for n in range(3000)]})
CODECS = ("none", "lz4", "zstd")


def write_part(path: Path, *tables: pa.Table, codec: str = "none") -> Path:
    part = ArrowPart(path, codec)
    for each in tables:
        part.write(each)
    part.close()
    return path


def arrow_batches(path: Path, batch_rows: int = 1024, **wanted: Any) -> list[RowBatch]:
    dataset = Dataset("arrow", str(path), **wanted)
    return [each for unit in list_units(dataset) for each in read_batches(dataset, unit, batch_rows)]


def rows_of(batches: list[RowBatch]) -> pa.Table:
    return pa.Table.from_batches([each.rows for each in batches if each.num_rows], TABLE.schema)


def pieces(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(start, size) for start in range(0, table.num_rows, size)]


VALUES = st.one_of(
    st.just((pa.null(), st.none())),
    st.just((pa.int64(), st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.just((pa.float64(), st.none() | st.floats(allow_nan=False))),
    st.just((pa.bool_(), st.none() | st.booleans())),
    st.just((pa.string(), st.none() | st.text(st.characters(exclude_categories=["Cs"])))),
    st.just((pa.list_(pa.int64()), st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3))),
    st.just((pa.struct([("a", pa.string())]), st.none() | st.fixed_dictionaries({"a": st.text("xyz")}))),
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(0, 20))
    kinds = draw(st.lists(VALUES, min_size=1, max_size=4))
    arrays = [
        pa.array(draw(st.lists(values, min_size=count, max_size=count)), kind) for kind, values in kinds
    ]
    return pa.table(arrays, names=[f"c{at}" for at in range(len(arrays))])


@settings(max_examples=60)
@given(table=tables(), codec=st.sampled_from(CODECS), batch_rows=st.integers(1, 25))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, codec: str, batch_rows: int
) -> None:
    path = write_part(tmp_path_factory.mktemp("round") / "a.arrow", table, codec=codec)
    batches = arrow_batches(path, batch_rows)
    assert pa.Table.from_batches([each.rows for each in batches]).equals(table)
    assert [line for each in batches for line in each.lines] == list(range(1, table.num_rows + 1))
    assert all(each.num_rows <= batch_rows and not each.bad for each in batches)


@pytest.mark.parametrize("codec", CODECS)
def test_each_write_is_one_batch_that_is_found_by_its_number(tmp_path: Path, codec: str) -> None:
    sizes = [3, 0, BATCH_ROWS, 1, 0]
    ids = itertools.count()
    written = [pa.table({"id": pa.array([next(ids) for _ in range(size)], pa.int64())}) for size in sizes]
    chunked = pa.concat_tables([written[0].slice(0, 1), written[0].slice(1)])
    path = write_part(tmp_path / "a.arrow", chunked, *written[1:], codec=codec)
    assert count_arrow_batches(str(path)) == len(sizes)
    found = list(read_arrow_batches(str(path), [4, 2, 0, 1, 0]))
    assert [pa.table(each) for each in found] == [written[at] for at in (4, 2, 0, 1, 0)]


def test_a_write_beyond_a_batch_makes_several(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.arrow", pa.table({"id": range(2 * BATCH_ROWS + 1)}))
    assert [each.num_rows for each in read_arrow_batches(str(path), [0, 1, 2])] == [BATCH_ROWS, BATCH_ROWS, 1]


def test_batches_keep_their_numbers_when_the_schema_widens(tmp_path: Path) -> None:
    nothing = pa.table({"id": pa.array([1, 2]), "late": pa.nulls(2)})
    late = pa.table({"id": [0.5], "late": ["x"], "new": [True]})
    path = write_part(tmp_path / "a.arrow", nothing, nothing.slice(0, 0), late)
    assert [each.to_pylist() for each in read_arrow_batches(str(path), range(3))] == [
        [{"id": 1.0, "late": None, "new": None}, {"id": 2.0, "late": None, "new": None}],
        [],
        [{"id": 0.5, "late": "x", "new": True}],
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["a.arrow"]


def test_records_are_written_as_the_table_they_make(tmp_path: Path) -> None:
    part = ArrowPart(tmp_path / "a.arrow", "none")
    part.write([{"id": 1}, {"id": 2, "text": "x"}])
    part.write([{"id": 0.5}])
    assert list(zip(part.schema.names, part.schema.types, strict=True)) == [
        ("id", pa.float64()),
        ("text", pa.string()),
    ]
    with pytest.raises(pa.ArrowException, match="id"):
        part.write([{"id": "one"}])
    part.close()
    assert count_arrow_batches(str(tmp_path / "a.arrow")) == 2
    [batch] = read_arrow_batches(str(tmp_path / "a.arrow"), [1])
    assert batch.to_pylist() == [{"id": 0.5, "text": None}]


def test_rows_without_columns_are_not_lost(tmp_path: Path) -> None:
    part = ArrowPart(tmp_path / "a.arrow", "none")
    with pytest.raises(ValueError, match="rows without any column: arrow cannot hold them"):
        part.write([{}, {}])
    part.write([{"id": 1}])
    part.write([{}, {}])
    part.close()
    assert [each.records for each in arrow_batches(tmp_path / "a.arrow")] == [[{"id": 1}], [{"id": None}] * 2]


def test_columns_of_a_few_texts_come_with_different_dictionaries(tmp_path: Path) -> None:
    first, second = (
        pa.table({"x": pa.array(each).dictionary_encode()}) for each in (["a", "b"], ["c", None])
    )
    path = write_part(tmp_path / "a.arrow", first, second)
    batches = arrow_batches(path)
    assert [each.rows.to_pydict() for each in batches] == [{"x": ["a", "b"]}, {"x": ["c", None]}]


def test_the_same_writes_give_the_same_bytes(tmp_path: Path) -> None:
    for codec in CODECS:
        one, two = (
            write_part(tmp_path / f"{name}-{codec}.arrow", *pieces(TABLE, 700), codec=codec) for name in "ab"
        )
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("twentieth", range(20))
def test_of_a_cut_file_the_batches_before_are_read(tmp_path: Path, codec: str, twentieth: int) -> None:
    content = write_part(tmp_path / "a.arrow", *pieces(TABLE, 100), codec=codec).read_bytes()
    path = tmp_path / "cut.arrow"
    path.write_bytes(content[: len(content) * twentieth // 20])
    batches = arrow_batches(path)
    rows = rows_of(batches)
    assert rows.equals(TABLE.slice(0, rows.num_rows))
    # Of the batches, those that were there whole: nearly as much as of the file, whose batches are alike.
    assert rows.num_rows >= TABLE.num_rows * twentieth // 20 - 300
    assert [(bad.line, bad.kind) for each in batches for bad in each.bad] == [(0, "damaged-file")]
    assert batches[-1].bad[0].reason.startswith(f"not a whole arrow file, {rows.num_rows} rows could be read")


def test_a_file_that_lost_its_last_byte_is_damaged(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.arrow", TABLE)
    path.write_bytes(path.read_bytes()[:-1])
    batches = arrow_batches(path, split_bytes=1)
    assert rows_of(batches).equals(TABLE)
    assert [bad.kind for each in batches for bad in each.bad] == ["damaged-file"]


@settings(max_examples=150)
@given(data=st.data(), codec=st.sampled_from(CODECS))
def test_a_flipped_bit_never_makes_more_rows_nor_loses_one_silently(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, codec: str
) -> None:
    """The format has no check sums: a value may have become another, but each row is there, or told."""
    path = tmp_path_factory.mktemp("flip") / "a.arrow"
    damaged = bytearray(write_part(path, *pieces(TABLE.slice(0, 30), 10), codec=codec).read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    batches = arrow_batches(path)
    bad = [row for each in batches for row in each.bad]
    good = sum(each.num_rows for each in batches)
    assert {row.kind for row in bad} <= {"damaged-file", "wrong-type"}
    assert good + sum(row.kind == "wrong-type" for row in bad) <= 30
    assert bad or good == 30
    for each in batches:
        each.rows.validate(full=True)


def test_memory_is_not_reserved_for_a_damaged_length(tmp_path: Path) -> None:
    """The length of the first message as 2^30: more than there is, so it need not be asked for."""
    path = write_part(tmp_path / "a.arrow", TABLE)
    damaged = bytearray(path.read_bytes())
    damaged[12:16] = (2**30).to_bytes(4, "little")
    path.write_bytes(damaged)
    assert [bad.kind for each in arrow_batches(path) for bad in each.bad] == ["damaged-file"]


def test_text_that_is_not_utf8_costs_its_row_only(tmp_path: Path) -> None:
    text = pa.array([b"fine", b"\xff", b"as well"]).cast(pa.binary()).view(pa.string())
    [batch] = arrow_batches(write_part(tmp_path / "a.arrow", pa.table({"text": text})))
    assert batch.rows.to_pydict() == {"text": ["fine", "as well"]}
    assert [(row.line, row.kind) for row in batch.bad] == [(2, "wrong-type")]


@settings(max_examples=25)
@given(split_bytes=st.integers(1, 100_000), batch_rows=st.integers(1, 2000), codec=st.sampled_from(CODECS))
def test_the_parts_of_a_file_are_together_the_file(
    tmp_path_factory: pytest.TempPathFactory, split_bytes: int, batch_rows: int, codec: str
) -> None:
    path = write_part(tmp_path_factory.mktemp("split") / "a.arrow", *pieces(TABLE, 700), codec=codec)
    batches = arrow_batches(path, batch_rows, split_bytes=split_bytes)
    assert rows_of(batches).equals(TABLE)
    assert [line for each in batches for line in each.lines] == list(range(1, 3001))
    units = list_units(Dataset("arrow", str(path), split_bytes=split_bytes))
    assert (len(units) > 1) == (path.stat().st_size > split_bytes)


def test_columns_and_types_are_those_that_the_dataset_declares(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.arrow", pa.table({"id": [1.0, 1.5], "text": ["a", "b"]}))
    [batch] = arrow_batches(path, columns=("new", "id"), types={"id": "int64"}, missing="null")
    assert batch.rows.to_pylist() == [{"new": None, "id": 1}]
    assert [(row.line, row.kind, row.raw) for row in batch.bad] == [(2, "wrong-type", b'{"id": 1.5}')]
    [batch] = arrow_batches(path, columns=("new", "text"))
    assert batch.num_rows == 0
    assert [(row.line, row.kind, row.raw) for row in batch.bad] == [
        (1, "missing-column", b'{"text": "a"}'),
        (2, "missing-column", b'{"text": "b"}'),
    ]


def test_a_column_that_appears_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as file:
        file.write_table(table)
    with pytest.raises(ArtifactError, match="column 'a' appears 2 times"):
        arrow_batches(tmp_path / "a.arrow")


def test_batches_of_a_remote_file_are_read_by_number(s3: str, tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.arrow", *pieces(TABLE, 700))
    with fsspec.open(f"{s3}/arrow/a.arrow", "wb") as file:
        file.write(path.read_bytes())
    url = f"{s3}/arrow/a.arrow"
    assert count_arrow_batches(url) == 5
    [batch] = read_arrow_batches(url, [4])
    assert pa.table(batch).equals(TABLE.slice(2800))
    dataset = Dataset("arrow", url)
    [unit] = list_units(dataset)
    assert rows_of(list(read_batches(dataset, unit))).equals(TABLE)


def test_a_file_that_is_not_there_is_an_error_not_a_bad_row(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.arrow", TABLE)
    dataset = Dataset("arrow", str(path))
    [unit] = list_units(dataset)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(read_batches(dataset, unit))
    with pytest.raises(FileNotFoundError):
        count_arrow_batches(str(path))
