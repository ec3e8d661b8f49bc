"""The records of a csv file (RFC 4180), each with its place, and what of it is no record.

The `csv` of the standard library tells neither the bytes where a record begins, nor an empty field from a
quoted empty one, nor does it go on after a record that is broken; so records are cut here, by lines.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from treadle.storage.dataset import RAW_BYTES
from treadle.storage.lines import Lines

RECORD_LINES = 10_000
"""A record ends within so many lines, or else its quote counts as one that is never closed."""

RECORD_BYTES = 16 * 2**20
"""The same in bytes; a record of one line may be as long as a line."""

Field = bytes | None
"""None is an empty field without quotes."""


@dataclass(frozen=True)
class Dialect:
    """The delimiter and the quote (b"": there is none), a byte each."""

    delimiter: bytes
    quote: bytes


class Record(NamedTuple):
    """One record: where it begins, its bytes, and its fields or the (kind, reason) of what is wrong."""

    line: int
    offset: int
    raw: bytes
    fields: list[Field]
    fault: tuple[str, str] | None = None

    @property
    def kept(self) -> bytes:
        """What a bad row keeps of it."""
        return self.raw[:RAW_BYTES]


class _Line(NamedTuple):
    number: int
    offset: int
    raw: bytes
    fault: tuple[str, str] | None


class _NotCsvError(Exception):
    """Why the lines so far are no record. Never leaves this module."""


class Records:
    """The records of some lines, in order. Blank lines are none.

    A record that is broken, or whose quote is not closed within `RECORD_LINES` and `RECORD_BYTES`, costs
    its first line only: it is given with a fault, and the next record begins on the next line. No line is
    looked at more than a few times: a line inside an open quote has an even number of quotes, so it leaves
    none open when it is read once more.
    """

    def __init__(self, lines: Iterator[Lines], dialect: Dialect) -> None:
        self._lines = _each(lines)
        self._dialect = dialect
        self._again: deque[_Line] = deque()

    def __iter__(self) -> Iterator[Record]:
        while (line := self._next()) is not None:
            if line.fault is not None:
                yield Record(line.number, line.offset, line.raw.removesuffix(b"\r"), [], line.fault)
            elif line.raw.strip(b"\r"):
                yield self._record(line)

    def _next(self) -> _Line | None:
        return self._again.popleft() if self._again else next(self._lines, None)

    def _record(self, first: _Line) -> Record:
        if not (self._dialect.quote and self._dialect.quote in first.raw) and b"\r" not in first.raw:
            # Most records: nothing that has a meaning but the delimiter.
            fields: list[Field] = [each or None for each in first.raw.split(self._dialect.delimiter)]
            return Record(first.number, first.offset, first.raw, fields)
        return self._spelt_record(first)

    def _spelt_record(self, first: _Line) -> Record:
        held = [first]
        fault: tuple[str, str] | None = None
        fields: list[Field] = []
        try:
            fields, fault = self._fields(held)
        except _NotCsvError as error:
            fault = ("not-csv", str(error))
            self._again.extendleft(reversed(held[1:]))
            held = held[:1]
        raw = b"\n".join(each.raw for each in held) if len(held) > 1 else first.raw
        return Record(first.number, first.offset, raw.removesuffix(b"\r"), fields, fault)

    def _fields(self, held: list[_Line]) -> tuple[list[Field], tuple[str, str] | None]:
        """The fields of the record that begins with the held line; the lines that it takes are held too."""
        parser = _Parser(self._dialect)
        size = len(held[0].raw)
        while not parser.feed(held[-1].raw):
            line = self._next()
            if line is None:
                raise _NotCsvError("a quote is opened and never closed")
            held.append(line)
            size += len(line.raw) + 1
            if line.fault is not None and line.fault[0] == "truncated-stream":
                return [], line.fault
            if line.fault is not None or len(held) > RECORD_LINES or size > RECORD_BYTES:
                raise _NotCsvError(
                    f"a quote is opened, but not closed within {RECORD_LINES} lines and {RECORD_BYTES} bytes"
                )
        return parser.fields, None


class _Parser:
    """Takes the lines of one record."""

    def __init__(self, dialect: Dialect) -> None:
        self.fields: list[Field] = []
        self._dialect = dialect
        self._open = False
        self._pieces: list[bytes] = []  # of the quoted field whose end is not read yet

    def feed(self, line: bytes) -> bool:
        """Whether the record is whole with this line."""
        end = len(line) - line.endswith(b"\r")
        quote = self._dialect.quote
        if not self._open and not (quote and quote in line):
            self.fields = [each or None for each in _plain(line[:end]).split(self._dialect.delimiter)]
            return True
        place = 0
        while place <= end:
            if not self._open and line.startswith(quote, place):
                self._open = True
                place += 1
            stop = self._quoted(line, place, end) if self._open else self._bare(line, place, end)
            if self._open:
                return False
            place = stop + 1
        return True

    def _bare(self, line: bytes, place: int, end: int) -> int:
        """Take a field without quotes; where it ends."""
        stop = line.find(self._dialect.delimiter, place, end)
        stop = end if stop < 0 else stop
        field = _plain(line[place:stop])
        if self._dialect.quote in field:
            raise _NotCsvError(f"field {len(self.fields) + 1}: a quote inside a field that is not quoted")
        self.fields.append(field or None)
        return stop

    def _quoted(self, line: bytes, place: int, end: int) -> int:
        """Take a quoted field, or its rest; where it ends. It stays open when it goes on in the next line."""
        found = _ending(self._dialect.quote).match(line, place)
        if found is None:
            self._pieces.append(line[place:])
            return end
        stop = found.end()
        if stop < end and not line.startswith(self._dialect.delimiter, stop):
            raise _NotCsvError(f"field {len(self.fields) + 1}: text after the closing quote")
        quote = self._dialect.quote
        text = b"\n".join([*self._pieces, line[place : stop - 1]])
        self.fields.append(text.replace(quote * 2, quote))
        self._open, self._pieces = False, []
        return stop


@cache
def _ending(quote: bytes) -> re.Pattern[bytes]:
    """The rest of a quoted field with the quote that closes it, which two quotes in a row do not.

    Possessive, so that a quote that is never closed costs one look at the line.
    """
    mark = re.escape(quote)
    return re.compile(b"[^%b]*+(?:%b%b[^%b]*+)*+%b" % (mark, mark, mark, mark, mark))


def _plain(text: bytes) -> bytes:
    if b"\r" in text:
        raise _NotCsvError("a carriage return outside quotes that ends no line; lines end with LF or CR LF")
    return text


def _each(lines: Iterator[Lines]) -> Iterator[_Line]:
    for some in lines:
        offset = some.offset
        last = len(some.raws) - 1
        for index, raw in enumerate(some.raws):
            line = raw.removesuffix(b"\n")
            yield _Line(some.before + index + 1, offset, line, some.broken if index == last else None)
            offset += len(raw)
