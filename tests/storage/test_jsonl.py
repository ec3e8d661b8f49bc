"""Rows of jsonl files: read, written, and read again."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.storage.columns import Columns
from treadle.storage.dataset import Dataset, Rows, WorkUnit
from treadle.storage.feed import list_units, read_batches
from treadle.storage.formats.jsonl import JsonlPart

Record = dict[str, Any]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
columns = st.fixed_dictionaries(
    {},
    optional={
        "text": st.none() | texts,
        "number": st.none() | numbers,
        "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
        "flags": st.none() | st.lists(st.booleans(), max_size=3),
        "who": st.none() | st.fixed_dictionaries({}, optional={"age": numbers, "names": st.lists(texts)}),
    },
)
writes = st.lists(st.lists(columns, min_size=1, max_size=5), max_size=4)


def written(path: Path, writes: list[Rows], codec: str = "none") -> tuple[bytes, pa.Schema]:
    path.unlink(missing_ok=True)
    part = JsonlPart(path, codec)
    for rows in writes:
        part.write(rows)
    part.close()
    return path.read_bytes(), part.schema


def records_of(path: Path, batch_rows: int = 1024, **options: Any) -> list[Record]:
    [unit] = list_units(dataset := Dataset("jsonl", str(path), **options))
    batches = list(read_batches(dataset, unit, batch_rows))
    assert not [bad for batch in batches for bad in batch.bad]
    return [dict(row) for batch in batches for row in batch.records]


def holds(cell: Any, value: Any) -> bool:
    """Whether what was read says what was written; a field that the column added is null."""
    if isinstance(value, dict):
        return all(holds(cell[name], inner) for name, inner in value.items()) and all(
            name in value or cell[name] is None for name in cell
        )
    if isinstance(value, list):
        return len(cell) == len(value) and all(map(holds, cell, value))
    return bool(cell == value) and (cell is None) == (value is None)


@settings(max_examples=60)
@given(writes)
def test_what_was_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, writes: list[Any]) -> None:
    """A widened column must not cost a value, whichever write widened it."""
    path = tmp_path_factory.getbasetemp() / "again.jsonl"
    written(path, writes)
    rows = [row for each in writes for row in each]
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(found) == len(rows)
    assert all(holds(one, other) for one, other in zip(found, rows, strict=True))


@settings(max_examples=60)
@given(st.lists(columns, min_size=1, max_size=6), st.integers(1, 6))
def test_the_bytes_are_the_same_from_records_and_from_a_table(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], many: int
) -> None:
    """A transform may take the rows through Arrow or not: an output must not tell."""
    path = tmp_path_factory.getbasetemp() / "both.jsonl"
    pieces = [rows[first : first + many] for first in range(0, len(rows), many)]
    tables = [Columns().fit(piece)[0] for piece in pieces]
    assert written(path, [*tables]) == written(path, [*pieces])


def test_every_line_has_the_columns_so_far_in_order_of_appearance(tmp_path: Path) -> None:
    content, schema = written(
        tmp_path / "a.jsonl",
        [[{"b": 1}, {"a": "x", "b": 2}], [{"a": "y"}], pa.table({"c": [True], "b": [3]})],
    )
    assert content.splitlines() == [
        b'{"b":1,"a":null}',
        b'{"b":2,"a":"x"}',
        b'{"b":null,"a":"y"}',
        b'{"b":3,"a":null,"c":true}',
    ]
    assert [(each.name, str(each.type)) for each in schema] == [
        ("b", "int64"),
        ("a", "string"),
        ("c", "bool"),
    ]


def test_a_whole_number_among_fractions_is_written_as_a_fraction(tmp_path: Path) -> None:
    """So that a reader that takes types from the first rows takes the right one."""
    content, _ = written(
        tmp_path / "a.jsonl", [[{"n": 1, "l": [2], "s": {"n": 3}}], [{"n": 0.5}], [{"n": 4}]]
    )
    assert content == (
        b'{"n":1,"l":[2],"s":{"n":3}}\n{"n":0.5,"l":null,"s":null}\n{"n":4.0,"l":null,"s":null}\n'
    )
    content, _ = written(
        tmp_path / "b.jsonl", [[{"l": [2, 0.5], "s": {"n": 3}}, {"l": [1], "s": {"n": 0.5}}]]
    )
    assert content == b'{"l":[2.0,0.5],"s":{"n":3.0}}\n{"l":[1.0],"s":{"n":0.5}}\n'


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"a": 1.0}, {"a": float("nan")}], "column a: nan is not JSON"),
        ([{"a": [1.0, float("inf")]}], "column a: inf is not JSON"),
        ([{"a": {"b": [{"c": float("-inf")}]}}], "column a: -inf is not JSON"),
        (pa.table({"x": [0.5], "a": [float("nan")]}), "column a: nan is not JSON"),
        ([{"a": 2**63}], "column a: 9223372036854775808 does not fit 64 bits"),
        (
            pa.table({"a": pa.array([2**63], pa.uint64())}),
            "column a: 9223372036854775808 does not fit 64 bits",
        ),
        ([{"a": "x"}, {"a": "\ud800"}], "column a: str is not valid UTF-8: surrogates not allowed"),
        ([{"b": 1, "a": ["\udfff"]}], "column a: str is not valid UTF-8: surrogates not allowed"),
        ([{"a": 1}, {"a": "x"}], "row 1: column a: expected int64, found a string 'x'"),
        ([{"a": {1, 2}}], "row 0: column a: a Python set has no JSON form: {1, 2}"),
        ([{"a": [np.float64(0.5)]}], "row 0: column a[]: a Python float64 has no JSON form"),
        ([{"a": b"x"}], "row 0: column a: a Python bytes has no JSON form: b'x'"),
        ([{1: "x"}], "column 1: the name of a column must be text, found an integer"),
        ([{"a": {None: "x"}}], "column None: the name of a column must be text, found null"),
    ],
)
def test_what_json_does_not_have_is_refused_with_its_column(tmp_path: Path, rows: Any, reason: str) -> None:
    """Other writers turn these into null, or write what no reader takes."""
    part = JsonlPart(tmp_path / "a.jsonl", "none")
    with pytest.raises(ValueError) as caught:
        part.write(rows)
    part.abandon()
    assert reason in str(caught.value)


def test_large_fractions_are_no_infinity(tmp_path: Path) -> None:
    """Their sum is one, but that is no reason to refuse them."""
    content, _ = written(tmp_path / "a.jsonl", [[{"a": 1.7e308}, {"a": 1.7e308}, {"a": None}]])
    assert content == b'{"a":1.7e+308}\n{"a":1.7e+308}\n{"a":null}\n'


def test_a_type_that_changes_between_writes_is_refused(tmp_path: Path) -> None:
    part = JsonlPart(tmp_path / "a.jsonl", "none")
    part.write([{"a": 1}])
    with pytest.raises(pa.ArrowException, match="Field a"):
        part.write([{"a": "x"}])
    part.abandon()


@pytest.mark.parametrize(
    ("codec", "unpacked"), [("gzip", gzip.decompress), ("zstd", lambda data: _unpacked_zstd(data))]
)
def test_a_compressed_file_has_the_same_lines_and_the_same_bytes_each_time(
    tmp_path: Path, codec: str, unpacked: Any
) -> None:
    writes: list[Rows] = [
        [{"n": n, "text": "x" * (n % 50)} for n in range(first, first + 1000)] for first in (0, 7)
    ]
    plain, _ = written(tmp_path / "a.jsonl", writes)
    packed, _ = written(tmp_path / "b", writes, codec)
    again, _ = written(tmp_path / "c", writes, codec)
    assert unpacked(packed) == plain
    assert packed == again
    assert len(packed) < len(plain) / 2


def _unpacked_zstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def test_rows_without_a_column_are_rows(tmp_path: Path) -> None:
    assert written(tmp_path / "a.jsonl", [[{}, {}]])[0] == b"{}\n{}\n"
    assert records_of(tmp_path / "a.jsonl") == [{}, {}]
    assert written(tmp_path / "b.jsonl", [[]])[0] == b""


def test_numbers_of_lines_skip_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\n{"a":1}\n\r\n{"a":2}\n{"a":3}')
    [batch] = read_batches(Dataset("jsonl", str(path)), WorkUnit("0", 0, str(path), 0))
    assert batch.lines == [2, 4, 5]
    assert batch.rows.to_pylist() == list(batch.records) == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_the_numbers_of_the_lines_of_a_part_are_a_sequence_that_travels(tmp_path: Path) -> None:
    """Workers get batches too, and Arrow takes the numbers as a column."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n' * 10 + b"\n" + b'{"a":2}\n' * 4)
    unit = WorkUnit("0", 0, str(path), 0, part=(4 * 8 - 3, 200))
    [batch] = read_batches(Dataset("jsonl", str(path)), unit)
    lines = pickle.loads(pickle.dumps(batch.lines))
    assert list(lines) == [5, 6, 7, 8, 9, 10, 12, 13, 14, 15]
    assert (len(lines), lines[0], lines[-1], list(lines[5:7])) == (10, 5, 15, [10, 12])
    assert pa.array(lines, pa.int64()).to_pylist() == list(lines)


@pytest.mark.parametrize("size", [1, 7, 100, 1000, 10**6])
def test_the_units_of_a_split_file_give_the_rows_of_the_file(tmp_path: Path, size: int) -> None:
    """Rows, lines and bad rows are those of the whole file, wherever it was cut."""
    path = tmp_path / "a.jsonl"
    rows = [orjson.dumps({"n": n, "text": "é" * (n % 9)}) for n in range(24)]
    rows[20:20] = [b"", b"{bad", b"\r", b'{"n": "x"}']
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(rows))

    def read(split_bytes: int | None) -> list[tuple[Any, ...]]:
        dataset = Dataset(
            "jsonl", str(path), split_bytes=split_bytes, types={"n": "int64"}, columns=("n", "text")
        )
        batches = [batch for unit in list_units(dataset) for batch in read_batches(dataset, unit)]
        good = [pair for batch in batches for pair in zip(batch.lines, batch.records, strict=True)]
        bad = [(each.line, each.offset, each.kind, each.raw) for batch in batches for each in batch.bad]
        return [*good, *bad]

    assert len(list_units(Dataset("jsonl", str(path), split_bytes=size))) == -(-path.stat().st_size // size)
    assert read(size) == read(None)
    assert [each[0] for each in read(size)[-2:]] == [22, 24]
