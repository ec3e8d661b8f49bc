from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.storage.lines import Line, read_lines


def lines_of(path: Path, content: bytes, max_line: int = 1000) -> list[Line]:
    path.write_bytes(content)
    return list(read_lines(str(path), max_line))


def test_line_breaks_blank_lines_and_the_byte_order_mark(tmp_path: Path) -> None:
    """A file from Windows has the same rows; a mark in the middle of a file is content, not a mark."""
    lines = lines_of(tmp_path / "a.jsonl", b"\xef\xbb\xbf{1}\r\n\r\n  \n\xef\xbb\xbf{2}\n{3}")
    assert [(each.number, each.raw, each.blank) for each in lines] == [
        (1, b"{1}", False),
        (2, b"", True),
        (3, b"  ", True),
        (4, b"\xef\xbb\xbf{2}", False),
        (5, b"{3}", False),
    ]


def test_an_empty_file_has_no_line(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "a.jsonl", b"") == []
    assert lines_of(tmp_path / "a.jsonl.gz", b"") == []
    assert lines_of(tmp_path / "b.jsonl.gz", gzip.compress(b"")) == []


def test_a_line_over_the_limit_is_one_broken_line(tmp_path: Path) -> None:
    """The next line is read as if nothing had happened, and the long one was never held whole."""
    lines = lines_of(
        tmp_path / "a.jsonl", b"{1}\n" + b"x" * 5000 + b"\n{2}\n" + b"y" * 1000 + b"\n" + b"z" * 1001
    )
    assert [each.number for each in lines] == [1, 2, 3, 4, 5]
    assert [each.broken for each in lines] == [
        None,
        "longer than 1000 bytes",
        None,
        None,
        "longer than 1000 bytes",
    ]
    assert lines[2].raw == b"{2}"


def test_the_longest_line_is_bounded_in_memory(tmp_path: Path) -> None:
    """A compressed file of one endless line must not fill the memory."""
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b"0" * 64 * 2**20))
    tracemalloc.start()
    [line] = read_lines(str(path), max_line=2**20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert line.broken is not None
    assert peak < 16 * 2**20


ROWS = b"".join(b'{"n": %d, "text": "%d"}\n' % (n, n * n * 7919) for n in range(300))
PACKED = gzip.compress(ROWS, mtime=0)


@settings(max_examples=60)
@given(cut=st.integers(0, len(PACKED)))
def test_a_cut_gzip_file_keeps_the_lines_before_the_cut(tmp_path_factory, cut: int) -> None:  # type: ignore[no-untyped-def]
    """What was written before a crash is good; where the stream breaks is said once, at the next line."""
    lines = lines_of(tmp_path_factory.mktemp("cut") / "a.jsonl.gz", PACKED[:cut])
    whole = [each.raw for each in lines if each.broken is None]
    assert whole == ROWS.splitlines()[: len(whole)]
    if 0 < cut < len(PACKED):
        assert lines[-1].broken is not None
        assert lines[-1].number == len(whole) + 1
    else:
        assert len(whole) == (300 if cut else 0)


def test_a_cut_late_in_a_gzip_file_loses_little(tmp_path: Path) -> None:
    """Only the check sum is missing, so every line is there, and the reason still is."""
    lines = lines_of(tmp_path / "a.jsonl.gz", PACKED[:-8])
    assert [each.raw for each in lines[:-1]] == ROWS.splitlines()
    assert "breaks here" in str(lines[-1].broken)


def test_what_is_not_gzip_or_has_garbage_at_its_end_is_said(tmp_path: Path) -> None:
    [line] = lines_of(tmp_path / "a.jsonl.gz", b'{"a": 1}\n')
    assert line.broken == "the gzip stream breaks here: Not a gzipped file (b'{\"')"
    lines = lines_of(tmp_path / "b.jsonl.gz", gzip.compress(b"{1}\n") + gzip.compress(b"{2}\n") + b"garbage")
    assert [each.raw for each in lines[:2]] == [b"{1}", b"{2}"]
    assert lines[2].broken is not None
