"""Large files in parts: the rows of all parts are the rows of the file, in order."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import ArgumentError
from treadle.storage import BadRow, Dataset, WorkUnit, list_units, read_batches

Rows = list[tuple[int, dict[str, Any]]]


def rows_of(dataset: Dataset) -> tuple[Rows, list[BadRow]]:
    """The rows with their lines, and the bad ones, of all units one after the other."""
    rows: Rows = []
    bad: list[BadRow] = []
    for unit in list_units(dataset):
        for batch in read_batches(dataset, unit, 7):
            rows += zip(batch.lines, map(dict, batch.records), strict=True)
            bad += batch.bad
    return rows, bad


LINES = st.sampled_from(
    [b'{"a": 1}', b'{"a": "\xc3\xa4\xe2\x82\xac"}', b"", b" ", b"\r", b"{", b"[]", b"\xff", b'{"b": null}\r']
)


@settings(max_examples=150)
@given(
    lines=st.lists(LINES, max_size=30),
    mark=st.booleans(),
    ended=st.booleans(),
    split_bytes=st.integers(1, 60),
)
def test_the_rows_of_the_parts_of_a_jsonl_file_are_those_of_the_file(  # type: ignore[no-untyped-def]
    tmp_path_factory, lines, mark, ended, split_bytes
) -> None:
    """With the same lines and the same bad rows at the same bytes, wherever the cuts are."""
    path = tmp_path_factory.mktemp("split") / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" * mark + b"\n".join(lines) + b"\n" * ended)
    whole = Dataset("jsonl", str(path), types={"a": "int64"}, columns=("a",), missing="null")
    parts = Dataset("jsonl", str(path), whole.columns, whole.types, "null", split_bytes=split_bytes)
    assert len(list_units(parts)) == max(1, -(-path.stat().st_size // split_bytes))
    assert rows_of(parts) == rows_of(whole)


@pytest.mark.parametrize("long", [2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20])
def test_a_line_that_reaches_over_many_parts_is_one_row(tmp_path: Path, long: int) -> None:
    """Longer than the blocks that are read, too."""
    path = tmp_path / "a.jsonl"
    lines = [{"a": "x" * (long - 9)}, {"a": "y"}, {"a": "z" * long}, {"a": "end"}]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    dataset = Dataset("jsonl", str(path), split_bytes=300_000)
    rows, bad = rows_of(dataset)
    assert [row for _, row in rows] == lines
    assert [line for line, _ in rows] == [1, 2, 3, 4]
    assert bad == []


@settings(max_examples=60)
@given(
    groups=st.lists(st.integers(0, 40), max_size=8),
    split_bytes=st.integers(1, 6000),
    kind=st.sampled_from(["parquet", "arrow"]),
)
def test_the_rows_of_the_parts_of_a_file_of_columns_are_those_of_the_file(  # type: ignore[no-untyped-def]
    tmp_path_factory, groups, split_bytes, kind
) -> None:
    """Also where a row group has no row, or one is larger than a part should be."""
    path = tmp_path_factory.mktemp("split") / f"a.{kind}"
    _WRITERS[kind](path, groups)
    whole = Dataset(kind, str(path), split_bytes=None)
    assert rows_of(Dataset(kind, str(path), split_bytes=split_bytes)) == rows_of(whole)
    assert len(rows_of(whole)[0]) == sum(groups)


_SCHEMA = pa.schema([("a", pa.int64())]).append(pa.field("b", pa.string()))


def _tables(groups: list[int]) -> list[pa.Table]:
    starts = [sum(groups[:at]) for at in range(len(groups))]
    return [
        pa.table({"a": range(start, start + size), "b": ["text"] * size}, schema=_SCHEMA)
        for start, size in zip(starts, groups, strict=True)
    ]


def _write_parquet(path: Path, groups: list[int]) -> None:
    tables = _tables(groups)
    with pq.ParquetWriter(path, _SCHEMA) as writer:
        for each in tables:
            writer.write_table(each)


def _write_arrow(path: Path, groups: list[int]) -> None:
    with pa.ipc.new_file(str(path), _SCHEMA) as writer:
        for each in _tables(groups):
            for batch in each.to_batches() or [pa.RecordBatch.from_pylist([], schema=_SCHEMA)]:
                writer.write_batch(batch)


_WRITERS: dict[str, Callable[[Path, list[int]], None]] = {"parquet": _write_parquet, "arrow": _write_arrow}


def test_units_are_numbered_through_all_files_and_say_where_they_begin(tmp_path: Path) -> None:
    for name, size in (("a", 100), ("b", 250), ("c", 100)):
        (tmp_path / f"{name}.jsonl").write_bytes(b'{"a": 1}\n' * (size // 9) + b" " * (size % 9))
    units = list_units(Dataset("jsonl", str(tmp_path), split_bytes=100))
    assert [each.id for each in units] == ["00000-a", "00001-b@0", "00002-b@100", "00003-b@200", "00004-c"]
    assert [each.index for each in units] == [0, 1, 2, 3, 4]
    assert [each.part for each in units] == [None, (0, 100), (100, 200), (200, 250), None]
    assert [each.bytes for each in units] == [100, 100, 100, 50, 100]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_a_compressed_file_stays_whole(tmp_path: Path, name: str) -> None:
    """Only its beginning can be found in it."""
    content = b'{"a": 1}\n' * 100
    packed = (
        gzip.compress(content) if name.endswith("gz") else pa.Codec("zstd").compress(content, asbytes=True)
    )
    (tmp_path / name).write_bytes(packed)
    dataset = Dataset("jsonl", str(tmp_path / name), split_bytes=5)
    [unit] = list_units(dataset)
    assert (unit.id, unit.part) == ("00000-a", None)
    assert len(rows_of(dataset)[0]) == 100


def test_a_damaged_file_stays_whole_and_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + b"x" * 100)
    dataset = Dataset("parquet", str(tmp_path), split_bytes=10)
    [unit] = list_units(dataset)
    assert unit.part is None
    [bad] = rows_of(dataset)[1]
    assert (bad.line, bad.kind) == (0, "damaged-file")


def test_the_identity_of_a_part_follows_its_content_and_its_place(tmp_path: Path) -> None:
    """A checkpoint takes a unit for done by it: a change of content or of the cuts must change it."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 50)
    first = list_units(Dataset("jsonl", str(path), split_bytes=200))
    assert first == list_units(Dataset("jsonl", str(path), split_bytes=200))
    other_cuts = list_units(Dataset("jsonl", str(path), split_bytes=150))
    whole = list_units(Dataset("jsonl", str(path)))
    path.write_bytes(b'{"a": 2}\n' * 50)
    changed = list_units(Dataset("jsonl", str(path), split_bytes=200))
    every = [*first, *other_cuts, *whole, *changed]
    assert len(_identities(every)) == len(every) == 3 + 3 + 1 + 3


def _identities(units: list[WorkUnit]) -> set[str]:
    return {each.identity for each in units if each.identity}


def test_a_part_of_no_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n")
    with pytest.raises(ArgumentError, match="split_bytes: expected at least 1, got 0"):
        list_units(Dataset("jsonl", str(tmp_path), split_bytes=0))
