from __future__ import annotations

import gzip
import tracemalloc
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.storage import line_numbers
from treadle.storage.lines import read_lines


class Line(NamedTuple):
    number: int
    offset: int
    raw: bytes
    broken: str | None


def lines_of(
    path: Path, content: bytes, max_line: int = 1000, part: tuple[int, int] | None = None, many: int = 7
) -> list[Line]:
    path.write_bytes(content)
    return [
        Line(
            lines.numbers[index],
            lines.offset_at(index),
            raw,
            lines.broken[1] if lines.broken is not None and index == len(lines.raws) - 1 else None,
        )
        for lines in read_lines(str(path), many, part, max_line)
        for index, raw in enumerate(lines.raws)
    ]


def test_line_breaks_blank_lines_and_the_byte_order_mark(tmp_path: Path) -> None:
    """A file from Windows has the same rows; a mark in the middle of a file is content, not a mark."""
    lines = lines_of(tmp_path / "a.jsonl", b"\xef\xbb\xbf{1}\r\n\r\n  \n\xef\xbb\xbf{2}\n{3}")
    assert [(each.number, each.offset, each.raw) for each in lines] == [
        (1, 3, b"{1}\r\n"),
        (2, 8, b"\r\n"),
        (3, 10, b"  \n"),
        (4, 13, b"\xef\xbb\xbf{2}\n"),
        (5, 20, b"{3}"),
    ]


def test_an_empty_file_has_no_line(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "a.jsonl", b"") == []
    assert lines_of(tmp_path / "a.jsonl.gz", b"") == []
    assert lines_of(tmp_path / "b.jsonl.gz", gzip.compress(b"")) == []
    assert lines_of(tmp_path / "b.jsonl.zst", zstandard.compress(b"")) == []


@settings(max_examples=200)
@given(
    pieces=st.lists(st.sampled_from([b"{1}", b"\n", b"\r\n", b"x" * 9, b" "]), max_size=30),
    max_line=st.integers(3, 30),
    many=st.integers(1, 5),
)
def test_lines_joined_are_the_file_wherever_blocks_and_batches_end(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], max_line: int, many: int
) -> None:
    """The length of a block follows `max_line` here, so ends of lines fall on all places of a block."""
    content = b"".join(pieces)
    lines = lines_of(tmp_path_factory.getbasetemp() / "joined.jsonl", content, max_line, many=many)
    expected = BytesIO(content).readlines()
    assert [each.number for each in lines] == list(range(1, len(expected) + 1))
    long = [len(each.removesuffix(b"\n")) > max_line for each in expected]
    assert [each.broken is not None for each in lines] == long
    for line, whole, cut in zip(lines, expected, long, strict=True):
        assert line.raw == (whole[:max_line] if cut else whole)
        assert content[line.offset : line.offset + len(whole)] == whole


def test_a_line_over_the_limit_is_one_broken_line(tmp_path: Path) -> None:
    """The next line is read as if nothing had happened, and the long one was never held whole."""
    lines = lines_of(
        tmp_path / "a.jsonl", b"{1}\n" + b"x" * 5000 + b"\n{2}\n" + b"y" * 1000 + b"\n" + b"z" * 1001
    )
    assert [each.number for each in lines] == [1, 2, 3, 4, 5]
    assert [each.offset for each in lines] == [0, 4, 5005, 5009, 6010]
    long = "longer than 1000 bytes"
    assert [each.broken for each in lines] == [None, long, None, None, long]
    assert lines[2].raw == b"{2}\n"


def test_the_longest_line_is_bounded_in_memory(tmp_path: Path) -> None:
    """A compressed file of one endless line must not fill the memory."""
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b"0" * 64 * 2**20))
    tracemalloc.start()
    [lines] = read_lines(str(path), max_line=2**20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines.broken is not None
    assert peak < 16 * 2**20


ROWS = b"".join(b'{"n": %d, "text": "%d"}\n' % (n, n * n * 7919) for n in range(300))
PACKED = {"gz": gzip.compress(ROWS, mtime=0), "zst": zstandard.compress(ROWS)}


@settings(max_examples=100)
@given(suffix=st.sampled_from(sorted(PACKED)), share=st.floats(0, 1))
def test_a_cut_stream_keeps_the_lines_before_the_cut(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, share: float
) -> None:
    """What was written before a crash is good; where the stream breaks is said once, at the next line."""
    cut = round(share * len(PACKED[suffix]))
    lines = lines_of(tmp_path_factory.getbasetemp() / f"cut.jsonl.{suffix}", PACKED[suffix][:cut])
    whole = [each.raw for each in lines if each.broken is None]
    assert whole == ROWS.splitlines(keepends=True)[: len(whole)]
    if 0 < cut < len(PACKED[suffix]):
        assert lines[-1].broken is not None
        assert (lines[-1].number, lines[-1].offset) == (len(whole) + 1, sum(map(len, whole)))
    else:
        assert len(whole) == (300 if cut else 0)


def test_a_cut_late_in_a_gzip_file_loses_nothing_but_says_so(tmp_path: Path) -> None:
    """Only the check sum is missing, so every line is there, and the reason still is."""
    lines = lines_of(tmp_path / "a.jsonl.gz", PACKED["gz"][:-8])
    assert [each.raw for each in lines[:-1]] == ROWS.splitlines(keepends=True)
    assert "breaks here" in str(lines[-1].broken)


CUTS = st.lists(st.integers(0, 80), max_size=4, unique=True).map(sorted)


@settings(max_examples=200)
@given(
    content=st.lists(st.sampled_from([b"{1}", b"\n", b"\r\n", b"\xef\xbb\xbf", b"x" * 9]), max_size=20),
    cuts=CUTS,
    max_line=st.integers(3, 30),
)
def test_the_lines_of_the_parts_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, content: list[bytes], cuts: list[int], max_line: int
) -> None:
    """Wherever a file is cut, each line is in one part, with its number and its offset in the file."""
    path, text = tmp_path_factory.getbasetemp() / "parts.jsonl", b"".join(content)
    ends = [min(cut, len(text)) for cut in cuts]
    parts = zip([0, *ends], [*ends, len(text)], strict=True)
    found = [line for part in parts for line in lines_of(path, text, max_line, part)]
    assert found == lines_of(path, text, max_line)


def test_lines_before_a_part_are_counted_once_and_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a hundred parts must not be read fifty times because each has a bad row."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{1}\n" * 10_000)
    counted: list[int] = []
    original = line_numbers._breaks_between

    def counting(name: str, first: int, end: int) -> int:
        counted.append(end - first)
        return original(name, first, end)

    monkeypatch.setattr(line_numbers, "_breaks_between", counting)
    size = path.stat().st_size
    parts = [(first, first + size // 10) for first in range(0, size, size // 10)]
    firsts = [next(read_lines(str(path), part=part)) for part in parts]
    assert counted == []
    assert [each.numbers[0] for each in firsts] == [1 + 1000 * at for at in range(10)]
    assert sum(counted) < size


def test_the_numbers_of_lines_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    """What was counted in a file that is replaced says nothing of the new one."""
    path = tmp_path / "a.jsonl"
    assert lines_of(path, b"\n\n\n\n{1}\n", part=(3, 8))[0].number == 4
    path.unlink()
    assert lines_of(path, b"xxx\n{1}\n{22}\n", part=(3, 13))[0].number == 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_a_failing_disk_is_raised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """A disk that fails is no property of the rows: the unit must be read again."""
    packed = {"a.jsonl": ROWS, "a.jsonl.gz": PACKED["gz"], "a.jsonl.zst": PACKED["zst"]}[name]

    class Failing:
        def __init__(self) -> None:
            self.left = [packed[: len(packed) // 2]]

        def read(self, size: int) -> bytes:
            if not self.left:
                raise OSError(5, "Input/output error")
            return self.left.pop()

        def seek(self, place: int) -> None:
            assert place == 0

        def __enter__(self) -> Failing:
            return self

        def __exit__(self, *error: Any) -> None:
            return

    monkeypatch.setattr(fsspec, "open", lambda *args: Failing())
    with pytest.raises(OSError, match="Input/output error") as caught:
        list(read_lines(str(tmp_path / name)))
    assert caught.value.errno == 5


def test_what_is_not_gzip_or_has_garbage_at_its_end_is_said(tmp_path: Path) -> None:
    [line] = lines_of(tmp_path / "a.jsonl.gz", b'{"a": 1}\n')
    assert "the gzip stream breaks here" in str(line.broken)
    lines = lines_of(tmp_path / "b.jsonl.gz", gzip.compress(b"{1}\n") + gzip.compress(b"{2}\n") + b"garbage")
    assert [each.raw for each in lines[:2]] == [b"{1}\n", b"{2}\n"]
    assert lines[2].broken is not None
