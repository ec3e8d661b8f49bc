from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import ArgumentError
from treadle.storage import BadRow, Dataset, RowBatch, WorkUnit, lines
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.formats.text import TextPart, read
from treadle.storage.formats.text_options import TextOptions


def batches(path: Path, batch_rows: int = 1024, **wanted: Any) -> list[RowBatch]:
    return list(read(Dataset("text", str(path), **wanted), WorkUnit("0", 0, str(path), 0), batch_rows))


def rows_and_bad(path: Path, **wanted: Any) -> tuple[list[Any], list[BadRow]]:
    found = batches(path, **wanted)
    return [row for each in found for row in each.records], [bad for each in found for bad in each.bad]


def write_part(path: Path, *rows: Any, codec: str = "none") -> Path:
    part = TextPart(path, codec, TextOptions())
    try:
        for each in rows:
            part.write(each)
        part.close()
    except BaseException:
        part.abandon()
        raise
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


def test_each_line_is_a_row_and_knows_its_number(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfone\r\n\ntwo \xc3\xa9\nlast")
    first, second = batches(file, 2)
    assert (list(first.lines), list(second.lines)) == ([1, 2], [3, 4])
    assert first.rows.to_pydict() == {"text": ["one", ""]}
    assert second.records == [{"text": "two é"}, {"text": "last"}]


@pytest.mark.parametrize(("line", "kind"), [(b"\xff", "not-utf8"), (b"a\0", "nul")])
def test_a_bad_line_costs_itself_alone(file: Path, line: bytes, kind: str) -> None:
    file.write_bytes(b"one\n" + line + b"\r\ntwo\n")
    rows, bad = rows_and_bad(file)
    assert rows == [{"text": "one"}, {"text": "two"}]
    assert [(each.line, each.kind, each.raw, each.offset) for each in bad] == [(2, kind, line, 4)]


def test_the_column_has_the_name_that_is_given(file: Path) -> None:
    file.write_bytes(b"one\n")
    assert rows_and_bad(file, options={"column": "body"})[0] == [{"body": "one"}]
    wanted = {"options": {"column": "body"}, "columns": ("id", "body")}
    assert rows_and_bad(file, missing="null", **wanted)[0] == [{"id": None, "body": "one"}]
    rows, bad = rows_and_bad(file, **wanted)
    assert (rows, [each.kind for each in bad]) == ([], ["missing-column"])


def test_a_whole_file_can_be_a_row(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfone\r\ntwo\n"))
    [batch] = batches(path, options={"whole": True})
    assert (list(batch.lines), batch.records) == ([1], [{"text": "one\r\ntwo\n"}])
    path.write_bytes(path.read_bytes()[:-9])
    rows, bad = rows_and_bad(path, options={"whole": True})
    assert (rows, [each.kind for each in bad]) == ([], ["truncated-stream"])


def test_a_whole_file_that_is_too_long_is_bad(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 5)
    file.write_bytes(b"12345")
    assert rows_and_bad(file, options={"whole": True})[0] == [{"text": "12345"}]
    file.write_bytes(b"123456")
    rows, bad = rows_and_bad(file, options={"whole": True})
    assert (rows, [(each.line, each.kind) for each in bad]) == ([], [(1, "too-long")])


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_stream_that_was_cut_gives_the_lines_before_the_cut(tmp_path: Path, codec: str) -> None:
    rows = [{"text": f"line {n * n * 7919 % 10007}"} for n in range(3000)]
    path = write_part(tmp_path / f"a{write_backend_for('text').codec(codec)[0]}", rows, codec=codec)
    path.write_bytes(path.read_bytes()[:-100])
    good, bad = rows_and_bad(path)
    assert good == rows[: len(good)]
    assert [each.kind for each in bad] == ["truncated-stream"]
    if codec == "gzip":  # a zstd frame gives whole blocks of many lines, or nothing
        assert len(good) > 2000


@pytest.mark.parametrize("whole", [False, True])
@given(data=st.binary(max_size=60))
def test_arbitrary_bytes_never_raise_and_each_line_is_a_row_or_bad(
    tmp_path_factory: pytest.TempPathFactory, whole: bool, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.txt"
    path.write_bytes(data)
    found = batches(path, 3, options={"whole": whole})
    places = sorted(
        [line for each in found for line in each.lines] + [bad.line for b in found for bad in b.bad]
    )
    text = data.removeprefix(b"\xef\xbb\xbf")
    assert places == list(
        range(1, 1 + (1 if whole else len(text.split(b"\n")) - (text[-1:] in (b"", b"\n"))))
    )


TEXTS = st.text(st.characters(exclude_characters="\0\r\n", codec="utf-8"), max_size=8) | st.just("\ufeffmark")


@given(texts=st.lists(TEXTS, max_size=6), codec=st.sampled_from(["none", "gzip", "zstd"]))
def test_texts_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], codec: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round{write_backend_for('text').codec(codec)[0]}"
    path.unlink(missing_ok=True)
    write_part(path, pa.table({"any": pa.array(texts, pa.string())}), codec=codec)
    rows, bad = rows_and_bad(path)
    assert (rows, bad) == ([{"text": each} for each in texts], [])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"bad": "two\nlines"}], "column bad: a text with a line break"),
        ([{"bad": "end\r"}], "column bad: a text with a line break"),
        ([{"bad": "\0"}], "column bad: a text with a line break or a NUL"),
        ([{"bad": None}], "column bad: a null"),
        ([{"bad": 1}], "column bad: expected string, found int64"),
        ([{"a": "x", "bad": "y"}], "column bad: text holds one column"),
        ([{}], "rows without a column"),
    ],
)
def test_what_would_not_come_back_is_refused_by_name(file: Path, rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_part(file, rows)


def test_options_are_checked(file: Path) -> None:
    file.write_bytes(b"one\n")
    with pytest.raises(ArgumentError, match="did you mean 'column'"):
        batches(file, options={"colum": "a"})
    with pytest.raises(ValueError, match="'whole' of the format text is for reading only"):
        TextPart(file.with_name("b.txt"), "none", TextOptions(whole=True))
