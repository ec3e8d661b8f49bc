"""What real files have in them: each good row is there, and exactly the bad ones are bad, and where."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from treadle.storage.dataset import RAW_BYTES, BadRow, Dataset, RowBatch, WorkUnit
from treadle.storage.feed import list_units, read_batches


class Read(NamedTuple):
    rows: list[dict[str, Any]]
    lines: list[int]
    bad: list[BadRow]
    batches: list[RowBatch]


def read(path: Path, batch_rows: int = 1024, **options: Any) -> Read:
    dataset = Dataset("jsonl", str(path), **options)
    batches = [each for unit in list_units(dataset) for each in read_batches(dataset, unit, batch_rows)]
    for batch in batches:
        assert batch.num_rows == len(batch.records) == batch.rows.num_rows == len(batch.lines)
    return Read(
        [dict(row) for batch in batches for row in batch.records],
        [line for batch in batches for line in batch.lines],
        [bad for batch in batches for bad in batch.bad],
        batches,
    )


GOOD = [b'{"n":%d,"text":"row %d"}' % (n, n) for n in range(50)]

# name -> (the bad line, its kind, what its reason says)
BAD_LINES = {
    "latin-1": ('{"n":1,"text":"café"}'.encode("latin-1"), "not-utf8", "byte 0xe9 at byte 19"),
    "half a character": (b'{"n":1,"text":"\xf0\x9f\x98"}', "not-utf8", "byte 0xf0"),
    "utf-16": ('{"n":1,"text":"x"}'.encode("utf-16"), "nul", "NUL byte"),
    "truncated": (b'{"n":1,"text":"ro', "not-json", "Unterminated string"),
    "two on a line": (b'{"n":1,"text":"a"}{"n":2,"text":"b"}', "not-json", "Extra data"),
    "single quotes": (b"{'n':1}", "not-json", "Expecting property name"),
    "comma at the end": (b'{"n":1,"text":"a",}', "not-json", "not JSON"),
    "raw control character": (b'{"n":1,"text":"a\x01"}', "not-json", "Invalid control character"),
    "mark in the middle": (b'\xef\xbb\xbf{"n":1,"text":"a"}', "not-json", "Expecting value"),
    "words": (b"Traceback (most recent call last):", "not-json", "Expecting value"),
    "NUL bytes": (b"\0" * 512, "nul", "NUL byte at byte 1"),
    "NUL in a text": (b'{"n":1,"text":"a\0b"}', "nul", "NUL byte at byte 17"),
    "NUL after a row": (b'{"n":1,"text":"a"}\0', "nul", "NUL byte at byte 19"),
    "lone surrogate": (b'{"n":1,"text":"\\ud800"}', "surrogate", "lone surrogate \\ud800"),
    "lone low surrogate": (b'{"n":1,"text":"\\udc00x"}', "surrogate", "lone surrogate \\udc00"),
    "surrogate in a name": (b'{"n":1,"text":"a","\\ud800":1}', "surrogate", "lone surrogate"),
    "NaN": (b'{"n":NaN,"text":"a"}', "nan", "NaN is not JSON"),
    "infinity": (b'{"n":-Infinity,"text":"a"}', "nan", "-Infinity is not JSON"),
    "integer of 65 bits": (b'{"n":18446744073709551616,"text":"a"}', "integer-range", "does not fit 64 bits"),
    "integer of 64 bits": (b'{"n":9223372036854775808,"text":"a"}', "integer-range", "does not fit 64 bits"),
    "integer below": (b'{"n":-9223372036854775809,"text":"a"}', "integer-range", "does not fit 64 bits"),
    "integer of 5000 digits": (b'{"n":%s,"text":"a"}' % (b"9" * 5000), "integer-range", "does not fit"),
    "integer in a list": (b'{"n":1,"text":"a","l":[9223372036854775808]}', "integer-range", "does not fit"),
    "fraction out of range": (b'{"n":1e999,"text":"a"}', "number-range", "1e999 is out of range"),
    "key twice": (b'{"n":1,"n":2,"text":"a"}', "duplicate-key", "duplicate key 'n'"),
    "key twice, spelt otherwise": (b'{"n":1,"\\u006e":2,"text":"a"}', "duplicate-key", "duplicate key 'n'"),
    "key twice, inside": (b'{"n":1,"text":"a","x":[{"k":1,"k":1}]}', "duplicate-key", "duplicate key 'k'"),
    "a thousand deep": (b'{"n":1,"x":%s}' % (b"[" * 1000 + b"]" * 1000), "too-deep", "deeper than 64"),
    "a million deep": (b'{"n":1,"x":' + b'{"a":' * 10**6, "too-deep", "deeper than 64"),
    "array": (b'[{"n":1,"text":"a"}]', "not-an-object", "found an array"),
    "text": (b'"row"', "not-an-object", "found a string"),
    "number": (b"17", "not-an-object", "found an integer"),
    "null": (b"null", "not-an-object", "found null"),
    "text for a number": (
        b'{"n":"1","text":"a"}',
        "wrong-type",
        "column n: expected int64, found a string '1'",
    ),
    "fraction": (b'{"n":1.5,"text":"a"}', "wrong-type", "column n: expected int64, found a number 1.5"),
    "object for a text": (b'{"n":1,"text":{"a":1}}', "wrong-type", "column text: expected string, found an"),
    "boolean for a number": (b'{"n":true,"text":"a"}', "wrong-type", "found a boolean True"),
}


@pytest.mark.parametrize("name", BAD_LINES)
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_bad_line_costs_one_row_and_is_told_with_its_place(tmp_path: Path, name: str, suffix: str) -> None:
    bad, kind, reason = BAD_LINES[name]
    lines = [*GOOD[:30], bad, *GOOD[30:]]
    path = write(tmp_path / f"a.jsonl{suffix}", b"\n".join(lines) + b"\n")
    found = read(path, batch_rows=20)
    assert found.rows == [json.loads(each) for each in GOOD]
    assert found.lines == [*range(1, 31), *range(32, 52)]
    [row] = found.bad
    assert (row.source, row.line, row.kind) == (str(path), 31, kind)
    assert row.offset == sum(len(each) + 1 for each in GOOD[:30])
    assert row.raw == bad[:RAW_BYTES]
    assert reason in row.reason


@pytest.mark.parametrize("declared", [False, True])
def test_a_row_that_the_first_one_makes_bad_hints_at_the_types(tmp_path: Path, declared: bool) -> None:
    """When the first row of a file is the odd one, all others are refused, and the reason must show why."""
    path = write(tmp_path / "a.jsonl", b'{"n":"one"}\n{"n":1}\n{"n":2}\n')
    found = read(path, types={"n": "int64"}) if declared else read(path)
    if declared:
        assert [each.reason for each in found.bad] == ["column n: expected int64, found a string 'one'"]
    else:
        assert [each.line for each in found.bad] == [2, 3]
        assert all(each.reason.endswith("unless inputs.NAME.types declares it") for each in found.bad)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(packed(content, path.suffix))
    return path


def test_all_kinds_in_one_file_are_told_apart(tmp_path: Path) -> None:
    """One bad row must not change the verdict of its neighbours, whatever they are."""
    lines = [each for bad, _, _ in BAD_LINES.values() for each in (GOOD[0], bad)]
    found = read(write(tmp_path / "a.jsonl", b"\r\n".join(lines)), types={"n": "int64"})
    assert found.rows == [json.loads(GOOD[0])] * len(BAD_LINES)
    assert [each.kind for each in found.bad] == [kind for _, kind, _ in BAD_LINES.values()]
    assert [each.line for each in found.bad] == list(range(2, 2 * len(BAD_LINES) + 1, 2))
    assert [each.raw for each in found.bad] == [bad[:RAW_BYTES] for bad, _, _ in BAD_LINES.values()]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_stream_that_breaks_gives_the_rows_before_and_says_where(
    tmp_path: Path, suffix: str, damage: str
) -> None:
    """A writer that was killed, or a disk that lost a bit: what is whole is used, the rest is told."""
    content = b"".join(b'{"n":%d,"text":"%d"}\n' % (n, n**7) for n in range(40_000))
    path = write(tmp_path / f"a.jsonl{suffix}", content)
    packed = path.read_bytes()
    middle = len(packed) // 2
    path.write_bytes(packed[:middle] + (b"" if damage == "cut" else bytes(64) + packed[middle + 64 :]))
    found = read(path)
    good = [row for row in found.rows if row.get("text") == str(row.get("n", 0) ** 7)]
    assert len(good) >= 10_000
    if damage == "cut":
        assert [row["n"] for row in found.rows] == list(range(len(good)))
    last = found.bad[-1]
    assert last.kind == "truncated-stream"
    assert last.line > len(good)
    assert f"the {'gzip' if suffix == '.gz' else 'zstd'} stream breaks here" in last.reason
    if damage == "cut":
        assert (last.line, len(found.bad)) == (len(good) + 1, 1)
        assert last.offset == content.index(b'{"n":%d,' % len(good))
        assert content[last.offset :].startswith(last.raw)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\r\n\r\n", b"  \n\t\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"]
)
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_file_without_rows_has_none(tmp_path: Path, content: bytes, suffix: str) -> None:
    found = read(write(tmp_path / f"a.jsonl{suffix}", content))
    assert (found.rows, found.bad) == ([], [])


def test_a_file_from_windows_has_the_same_rows(tmp_path: Path) -> None:
    """A byte order mark, CRLF and blank lines are no content; the numbers are those that an editor shows."""
    path = write(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"n":1}\r\n\r\n{"n":2}\r\nbad\r\n\r\n{"n":3}')
    found = read(path)
    assert (found.rows, found.lines) == ([{"n": 1}, {"n": 2}, {"n": 3}], [1, 3, 6])
    assert [(each.line, each.offset, each.raw) for each in found.bad] == [(4, 23, b"bad")]


def test_a_row_of_40_megabytes_is_a_row(tmp_path: Path) -> None:
    text = 'wide : "row" ' * (40 * 2**20 // 13)
    lines = [b'{"n":1,"text":"a"}', json.dumps({"n": 2, "text": text}).encode(), b'{"n":3,"text":"b"}']
    found = read(write(tmp_path / "a.jsonl", b"\n".join(lines)))
    assert found.lines == [1, 2, 3]
    assert found.rows[1]["text"] == text
    assert found.bad == []


def test_a_bad_row_of_40_megabytes_is_kept_in_part(tmp_path: Path) -> None:
    """Its beginning shows what it is; the offset says where the rest can be found."""
    bad = b'{"n":1,"text":"' + b"x" * 40 * 2**20
    found = read(write(tmp_path / "a.jsonl", b'{"n":0}\n' + bad + b'\n{"n":2}\n'))
    assert [row["n"] for row in found.rows] == [0, 2]
    [row] = found.bad
    assert (row.line, row.offset, row.raw) == (2, 8, bad[:RAW_BYTES])


def test_a_row_without_a_wanted_column_is_bad_or_has_null_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"a":1,"b":2}\n{"b":3,"c":4}\n{"b":5,"a":null}\n')
    rejected = read(path, columns=("a", "b"))
    assert rejected.rows == [{"a": 1, "b": 2}, {"a": None, "b": 5}]
    [row] = rejected.bad
    assert (row.line, row.kind, row.reason) == (2, "missing-column", "column a: missing")
    filled = read(path, columns=("a", "b"), missing="null")
    assert filled.rows == [{"a": 1, "b": 2}, {"a": None, "b": 3}, {"a": None, "b": 5}]
    assert filled.bad == []


def test_a_column_that_comes_later_is_a_column(tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.jsonl", b'{"a":1}\n{"a":2,"new":"x"}\n{"new":"y"}\n'), batch_rows=1)
    assert found.rows == [{"a": 1}, {"a": 2, "new": "x"}, {"new": "y"}]
    assert [batch.rows.schema.names for batch in found.batches] == [["a"], ["a", "new"], ["a", "new"]]
    assert found.bad == []


def test_a_type_that_drifts_within_a_file_costs_the_rows_that_drifted(tmp_path: Path) -> None:
    """The first batch decides, or the declared type; no value becomes another one."""
    lines = [
        *[b'{"id":%d}' % n for n in range(30)],
        *[b'{"id":"%d"}' % n for n in range(30, 40)],
        b'{"id":40}',
    ]
    path = write(tmp_path / "a.jsonl", b"\n".join(lines))
    found = read(path, batch_rows=8)
    assert [row["id"] for row in found.rows] == [*range(30), 40]
    assert [each.line for each in found.bad] == list(range(31, 41))
    assert {each.kind for each in found.bad} == {"wrong-type"}
    declared = read(path, batch_rows=8, types={"id": "string"})
    assert [row["id"] for row in declared.rows] == [str(n) for n in range(30, 40)]
    assert len(declared.bad) == 31


def test_a_column_of_nulls_takes_the_type_of_its_first_value(tmp_path: Path) -> None:
    """However many rows it takes: here ten batches of nulls before the first score."""
    rows = [{"n": n, "score": None} for n in range(10_000)]
    rows += [{"n": 10_000, "score": 0.5}, {"n": 10_001, "score": "x"}]  # type: ignore[dict-item]
    found = read(write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)).encode()))
    assert len(found.rows) == 10_001
    assert found.rows[-1] == {"n": 10_000, "score": 0.5}
    assert [str(batch.rows.schema.field("score").type) for batch in found.batches] == ["null"] * 9 + [
        "double"
    ]
    assert [(each.line, each.kind) for each in found.bad] == [(10_002, "wrong-type")]


def packed(content: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(content, mtime=0)
    return zstandard.compress(content) if suffix == ".zst" else content


line = st.binary(max_size=12) | st.sampled_from(
    [
        b'{"a":1}',
        b'{"a":"x"}',
        b"{}",
        b"",
        b" ",
        b"\r",
        b'{"a":1,"a":1}',
        b"\xef\xbb\xbf",
        b'{"b":[1,"x"]}',
        b"\0",
    ]
)


@settings(max_examples=150)
@given(
    content=st.lists(line, max_size=8).map(b"\n".join),
    suffix=st.sampled_from(["", ".gz", ".zst"]),
    batch_rows=st.integers(1, 5),
    split=st.integers(1, 40),
)
@example(content=b"\xef\xbb\xbf\xef\xbb\xbf{}", suffix="", batch_rows=1, split=2)
def test_whatever_the_bytes_each_line_is_a_row_or_bad_or_blank(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str, batch_rows: int, split: int
) -> None:
    """Nothing raises, nothing is lost, nothing is counted twice; a file in parts gives the same lines."""
    path = tmp_path_factory.getbasetemp() / f"fuzz.jsonl{suffix}"
    path.write_bytes(packed(content, suffix))
    lines = io.BytesIO(content.removeprefix(b"\xef\xbb\xbf")).readlines()
    expected = [number for number, raw in enumerate(lines, 1) if raw.strip()]
    whole = read(path, batch_rows)
    assert sorted([*whole.lines, *(each.line for each in whole.bad)]) == expected
    for bad in whole.bad:
        assert content[bad.offset or 0 :].startswith(bad.raw)
    # Types are learnt in each part alone, so that only what is no JSON must be bad in both.
    parts = read(path, batch_rows, split_bytes=split)
    assert sorted([*parts.lines, *(each.line for each in parts.bad)]) == expected
    assert {each.line for each in parts.bad if each.kind != "wrong-type"} == {
        each.line for each in whole.bad if each.kind != "wrong-type"
    }


@settings(max_examples=150)
@given(content=st.binary(max_size=80), suffix=st.sampled_from([".gz", ".zst"]), flip=st.integers(0, 200))
def test_whatever_is_in_a_compressed_file_nothing_raises(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str, flip: int
) -> None:
    """Bytes that are no stream at all, and a stream with one byte changed."""
    path = tmp_path_factory.getbasetemp() / f"damaged.jsonl{suffix}"
    path.write_bytes(content)
    raw = read(path)
    assert not content or raw.bad[-1].kind == "truncated-stream"
    stream = bytearray(packed(b'{"a":1}\n' * 20, suffix))
    stream[flip % len(stream)] ^= 1 + flip // len(stream)
    path.write_bytes(bytes(stream))
    found = read(path)
    # Only gzip always has a check sum.
    assert suffix == ".zst" or found.bad or found.rows == [{"a": 1}] * 20


def test_a_schema_is_there_for_a_batch_of_bad_rows_only(tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.jsonl", b"bad\n"))
    [batch] = found.batches
    assert batch.rows.schema == pa.schema([])
    assert batch.num_rows == 0


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read_batches(Dataset("jsonl", "a"), WorkUnit("0", 0, str(tmp_path / "gone.jsonl"), 0)))
