from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import ArgumentError
from treadle.storage import BadRow, Dataset, RowBatch, WorkUnit, csv_records, list_units, read_batches
from treadle.storage.csv_records import RECORD_LINES
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.formats.csv_options import CsvOptions
from treadle.storage.formats.csv_part import CsvPart
from treadle.storage.formats.delimited import read

QUOTED = CsvOptions()


def batches(path: Path, batch_rows: int = 1024, **wanted: Any) -> list[RowBatch]:
    dataset = Dataset("csv", str(path), **wanted)
    return list(read(dataset, WorkUnit("0", 0, str(path), 0), batch_rows))


def rows_and_bad(path: Path, data: bytes, **wanted: Any) -> tuple[list[Any], list[BadRow]]:
    path.write_bytes(data)
    found = batches(path, **wanted)
    return [row for each in found for row in each.records], [bad for each in found for bad in each.bad]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.csv"


def write_part(path: Path, *rows: Any, codec: str = "none", options: CsvOptions = QUOTED) -> Path:
    part = CsvPart(path, codec, options)
    try:
        for each in rows:
            part.write(each)
        part.close()
    except BaseException:
        part.abandon()
        raise
    return path


def test_the_header_names_the_columns_and_each_row_knows_its_line(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbfid,text\r\n1,one\r\n\r\n2,"two\nlines, ""quoted"""\r\n3,""\r\n,last')
    [batch] = batches(file)
    assert list(batch.lines) == [2, 4, 6, 7]
    assert batch.rows.to_pydict() == {
        "id": ["1", "2", "3", None],
        "text": ["one", 'two\nlines, "quoted"', "", "last"],
    }
    assert batch.bad == ()


def test_declared_types_make_values_and_what_is_no_value_is_bad(file: Path) -> None:
    types = {"b": "bool", "i": "int64", "f": "float64"}
    rows, bad = rows_and_bad(
        file,
        b'b,i,f\ntrue,-7,2.5e3\n,,\nyes,1,1\nfalse,1.0,1\nfalse,9223372036854775808,1\nfalse,1,nan\nfalse,"",1\n'
        b"false,1,1e999\nfalse,1_0,1\n",
        types=types,
    )
    assert rows == [{"b": True, "i": -7, "f": 2500.0}, {"b": None, "i": None, "f": None}]
    assert [(each.line, each.kind) for each in bad] == [(line, "wrong-type") for line in range(4, 11)]
    assert bad[0].reason == "column b: expected bool (true or false), found 'yes'"


def test_columns_that_are_wanted_come_in_their_order(file: Path) -> None:
    rows, bad = rows_and_bad(file, b"a,b,c\n1,2,3\n", columns=("c", "z", "a"), missing="null")
    assert (rows, bad) == ([{"c": "3", "z": None, "a": "1"}], [])
    rows, bad = rows_and_bad(file, b"a,b,c\n1,2,3\n", columns=("c", "z"))
    assert rows == []
    assert [(each.kind, each.reason) for each in bad] == [("missing-column", "column z: missing")]


def test_a_file_with_a_header_only_tells_its_columns(file: Path) -> None:
    file.write_bytes(b"a,b\n")
    [batch] = batches(file, types={"b": "int64"})
    assert batch.rows.schema.names == ["a", "b"]
    assert batch.rows.schema.types == [pa.string(), pa.int64()]
    assert batch.num_rows == 0
    assert rows_and_bad(file, b"") == ([], [])


def test_without_a_header_the_columns_are_numbered(file: Path) -> None:
    rows, bad = rows_and_bad(file, b'"\n1;2\n3;4\n', options={"header": False, "delimiter": ";"})
    assert rows == [{"c0": "1", "c1": "2"}, {"c0": "3", "c1": "4"}]
    assert [(each.line, each.kind) for each in bad] == [(1, "not-csv")]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"1,2,3", "wrong-width"),
        (b"1", "wrong-width"),
        (b"1,\xff", "not-utf8"),
        (b"1,\0", "nul"),
        (b'1,"2', "not-csv"),
        (b'"1"x,2', "not-csv"),
        (b'x"1",2', "not-csv"),
        (b"1\r2,3", "not-csv"),
        (b"1,x", "wrong-type"),
    ],
)
def test_each_kind_of_bad_row_costs_that_row_alone(file: Path, line: bytes, kind: str) -> None:
    before, after = b"a,b\n1,1\n", b'\n"2",2\n3,3\n'
    rows, bad = rows_and_bad(file, before + line + after, types={"b": "int64"})
    assert [row["b"] for row in rows] == [1, 2, 3]
    assert [(each.line, each.kind, each.raw, each.offset) for each in bad] == [(3, kind, line, len(before))]


@pytest.mark.parametrize("header", [b"a,a", b"a,,b", b'"a', b"a\xff", b"a\0b", b"a\rb"])
def test_a_header_that_cannot_be_used_makes_the_file_bad(file: Path, header: bytes) -> None:
    rows, bad = rows_and_bad(file, header + b"\n1,2\n")
    assert rows == []
    assert [(each.line, each.kind, each.raw) for each in bad] == [(1, "damaged-file", header)]


def test_a_quote_that_is_never_closed_costs_one_row(file: Path) -> None:
    count = RECORD_LINES + 50
    rows, bad = rows_and_bad(file, b'a,b\n1,"open\n' + b"x,y\n" * count)
    assert len(rows) == count
    assert [(each.line, each.kind, each.raw) for each in bad] == [(2, "not-csv", b'1,"open')]
    assert "not closed within" in bad[0].reason


def test_a_long_record_of_one_line_is_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "RECORD_BYTES", 100)
    long = "x" * 1000
    rows, bad = rows_and_bad(file, f'a,b\n1,"{long}"\n2,"{long}\n"\n'.encode())
    assert rows == [{"a": "1", "b": long}]
    assert [(each.line, each.kind) for each in bad] == [(3, "not-csv"), (4, "not-csv")]


def test_quotes_mean_nothing_when_there_are_none(file: Path) -> None:
    assert rows_and_bad(file, b'a\n5" pipe\n"\n', options={"quote": ""})[0] == [{"a": '5" pipe'}, {"a": '"'}]


def test_a_tsv_file_has_tabs(tmp_path: Path) -> None:
    rows, _ = rows_and_bad(tmp_path / "a.tsv", b"a\tb\n1,5\t2\n")
    assert rows == [{"a": "1,5", "b": "2"}]
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b"a\tb\n1\t2\n"))
    assert batches(tmp_path / "b.tsv.gz")[0].records == [{"a": "1", "b": "2"}]


def test_files_of_a_folder_are_found_by_their_suffix(tmp_path: Path) -> None:
    for name in ("a.csv", "b.tsv", "c.csv.gz", "d.txt"):
        (tmp_path / name).write_bytes(gzip.compress(b"a\n1\n") if name.endswith("gz") else b"a\n1\n")
    dataset = Dataset("csv", str(tmp_path))
    units = list_units(dataset)
    assert [Path(unit.source).name for unit in units] == ["a.csv", "b.tsv", "c.csv.gz"]
    read_rows = [row for unit in units for each in read_batches(dataset, unit) for row in each.records]
    assert read_rows == [{"a": "1"}] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ",,"}, "option 'delimiter.*one ASCII character"),
        ({"delimiter": "\n"}, "option 'delimiter.*no line break"),
        ({"quote": ","}, "a quote other than the delimiter"),
        ({"hedaer": True}, "did you mean 'header'"),
    ],
)
def test_wrong_options_are_named(file: Path, options: dict[str, object], message: str) -> None:
    file.write_bytes(b"a\n")
    with pytest.raises(ArgumentError, match=message):
        batches(file, options=options)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_stream_that_was_cut_gives_the_rows_before_the_cut(tmp_path: Path, codec: str) -> None:
    suffix = write_backend_for("csv").codec(codec)[0]
    rows = [{"n": n, "text": f"line\n{n * n * 7919 % 10007}"} for n in range(3000)]
    path = write_part(tmp_path / f"a{suffix}", rows, codec=codec)
    path.write_bytes(path.read_bytes()[:-100])
    found = batches(path, types={"n": "int64"})
    good = [row for each in found for row in each.records]
    assert good == rows[: len(good)]
    [bad] = [bad for each in found for bad in each.bad]
    assert bad.kind == "truncated-stream"
    if codec == "gzip":  # a zstd frame gives whole blocks of many rows, or nothing
        assert len(good) > 2000


@pytest.mark.parametrize("header", [True, False])
@given(
    data=st.binary(max_size=60)
    | st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"a", b"\xff"])).map(b"".join)
)
def test_arbitrary_bytes_never_raise_and_give_no_more_rows_than_lines(
    tmp_path_factory: pytest.TempPathFactory, header: bool, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.csv"
    path.write_bytes(data)
    found = batches(path, 3, options={"header": header})
    places = sorted(
        [line for each in found for line in each.lines] + [bad.line for b in found for bad in b.bad]
    )
    assert len(set(places)) == len(places)  # no line gives two
    assert not places or 1 <= places[0] <= places[-1] <= 1 + data.count(b"\n")
    texts = [value for each in found for row in each.records for value in row.values() if value]
    assert all(text.replace('"', '""').encode() in data for text in texts)


VALUES = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8),
        "spelt": st.none() | st.text(st.sampled_from('",;\n\r\ufeff a'), max_size=6),
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "b": st.none() | st.booleans(),
    }
)
KINDS: dict[str, pa.DataType] = {
    "text": pa.string(),
    "spelt": pa.string(),
    "i": pa.int64(),
    "f": pa.float64(),
    "b": pa.bool_(),
}
SCHEMA = pa.schema(KINDS)
TYPES = {"i": "int64", "f": "float64", "b": "bool"}
OPTIONS = [
    CsvOptions(),
    CsvOptions(delimiter=";", quote="'"),
    CsvOptions(delimiter="a"),
    CsvOptions(delimiter="1"),
]


def given_options(options: CsvOptions) -> dict[str, object]:
    return {"delimiter": options.delimiter, "quote": options.quote} if options.delimiter else {}


@given(rows=st.lists(VALUES, max_size=5), options=st.sampled_from(OPTIONS), data=st.data())
def test_rows_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], options: CsvOptions, data: st.DataObject
) -> None:
    codec = data.draw(st.sampled_from(["none", "gzip", "zstd"]))
    path = tmp_path_factory.getbasetemp() / f"round{write_backend_for('csv').codec(codec)[0]}"
    path.unlink(missing_ok=True)
    write_part(path, pa.Table.from_pylist(rows, SCHEMA), codec=codec, options=options)
    found = batches(path, 2, types=TYPES, options=given_options(options))
    assert [bad for each in found for bad in each.bad] == []
    assert [row for each in found for row in each.records] == rows


def test_null_and_the_empty_text_are_written_differently(file: Path) -> None:
    write_part(file, [{"a": None, "b": ""}, {"a": "x,y", "b": 'say "a"'}, {"a": "plain", "b": "a b"}])
    assert file.read_bytes() == b'a,b\n,""\n"x,y","say ""a"""\nplain,a b\n'


def test_columns_that_come_later_are_null_in_the_rows_before(file: Path) -> None:
    write_part(file, [{"a": "x\ny"}, {"a": "2"}], [{"a": "3", "b": 7}], [{"b": 8}])
    assert rows_and_bad(file, file.read_bytes())[0] == [
        {"a": "x\ny", "b": None},
        {"a": "2", "b": None},
        {"a": "3", "b": "7"},
        {"a": None, "b": "8"},
    ]
    assert [each.name for each in file.parent.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_the_same_rows_give_the_same_bytes(tmp_path: Path, codec: str) -> None:
    rows = [{"n": n, "text": "x" * (n % 50)} for n in range(2000)]
    one = write_part(tmp_path / "one", rows, rows, codec=codec)
    other = write_part(tmp_path / "other", rows, rows, codec=codec)
    assert one.read_bytes() == other.read_bytes()


UNFIT: list[tuple[Any, CsvOptions, str]] = [
    ([{"a": "x", "bad": [1]}], QUOTED, "column bad: list.* has no form in csv"),
    ([{"a": "x", "bad": math.nan}], QUOTED, "column bad: nan has no form"),
    ([{"a": "x", "bad": "\0"}], QUOTED, "column bad: a NUL"),
    ([{"bad": None}], QUOTED, "column bad: a null in the only column"),
    ([{"a": "x", "bad": "x,y"}], CsvOptions(quote=""), "column bad: 'x,y' needs quotes"),
    ([{"a": "x", "": "y"}], QUOTED, "column without a name"),
    ([{"a": "x", "bad": "\n" * RECORD_LINES}], QUOTED, "more than 10000 lines"),
    ([{}], QUOTED, "rows without columns"),
]


@pytest.mark.parametrize(("rows", "options", "message"), UNFIT)
def test_what_would_not_come_back_is_refused_by_name(
    file: Path, rows: Any, options: CsvOptions, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write_part(file, rows, options=options)
