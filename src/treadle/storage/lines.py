"""The lines of a file, one at a time and in bounded memory, through its decompressor.

A stream that breaks in the middle (a gzip file that was cut, or is corrupt) ends with the reason in place
of the next line; every whole line before the break is given. A failing disk or network is raised as it is.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import fsspec

MAX_LINE_BYTES = 256 * 2**20
"""A longer line is a broken line, read past without being held."""


@dataclass(frozen=True)
class Line:
    """A line without its line break. `number` counts from 1. `broken` says why it could not be read."""

    number: int
    raw: bytes
    broken: str | None = None

    @property
    def blank(self) -> bool:
        """Whether it is only white space; such a line is not a row."""
        return self.broken is None and not self.raw.strip()


def read_lines(path: str, max_line: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The lines of a file; `.gz` is decompressed. A byte order mark at its start is dropped."""
    with fsspec.open(path, "rb") as file:
        if not path.endswith(".gz"):
            yield from _lines(file, max_line)
            return
        with gzip.GzipFile(fileobj=file, mode="rb") as stream:
            yield from _lines(stream, max_line)


def _lines(stream: BinaryIO | gzip.GzipFile, max_line: int) -> Iterator[Line]:
    number = 0
    while True:
        number += 1
        try:
            raw, whole = _next_line(stream, max_line)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield Line(number, b"", f"the gzip stream breaks here: {error}")
            return
        if not raw:
            return
        broken = None if whole else f"longer than {max_line} bytes"
        yield Line(number, _bare(raw, first=number == 1), broken)


def _next_line(stream: BinaryIO | gzip.GzipFile, limit: int) -> tuple[bytes, bool]:
    """The next line with its break, b"" at the end; or only the start of a line over the limit, and False."""
    raw = stream.readline(limit + 1)
    if len(raw) <= limit or raw.endswith(b"\n"):
        return raw, True
    rest = raw
    while rest and not rest.endswith(b"\n"):
        rest = stream.readline(2**20)
    return raw[:2000], False


def _bare(raw: bytes, *, first: bool) -> bytes:
    raw = raw.removesuffix(b"\n").removesuffix(b"\r")
    return raw.removeprefix(b"\xef\xbb\xbf") if first else raw
