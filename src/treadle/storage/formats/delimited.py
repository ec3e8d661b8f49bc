"""The csv format: records of RFC 4180, plain, gzip or zstd.

Reading: lines -> records (`csv_records`) -> rows by the header -> values of the declared types. Each step can
refuse a row, and only that row; a header that is not usable makes the whole file bad.
An empty field without quotes is null, a quoted one is the empty text; writing does the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from treadle.storage.columns import Columns
from treadle.storage.csv_records import Field, Record, Records
from treadle.storage.dataset import BadRow, Dataset, RowBatch, WorkUnit
from treadle.storage.formats.csv_options import CsvOptions
from treadle.storage.formats.csv_part import CsvPart, dialect_of, unwritable
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.formats.options import parse_options
from treadle.storage.grid import Row
from treadle.storage.lines import BATCH_BYTES, read_lines

_INTEGER = re.compile(r"[+-]?[0-9]{1,25}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EXCERPT = 60


class _Fault(Exception):  # noqa: N818 - it never leaves this module
    """Why a record is no row: its kind and a sentence."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def read(dataset: Dataset, unit: WorkUnit, batch_rows: int) -> Iterator[RowBatch]:
    """The rows of a unit, good and bad ones, `batch_rows` at a time.

    A file with a header and no rows gives one empty batch, which carries its columns. Raises ArgumentError
    for an option that is unknown or has a wrong value.
    """
    options = parse_options("csv", CsvOptions, dataset.options)
    records = iter(Records(read_lines(unit.source), dialect_of(options, unit.source)))
    names: list[str] | None = None
    for first in records:
        try:
            names = _names(first, header=options.header)
        except _Fault as fault:
            yield RowBatch([], unit.source, (_bad(unit.source, first, fault),))
            if options.header:
                return
            continue
        rows = records if options.header else chain([first], records)
        yield from _Table(names, dataset, unit.source).batches(rows, batch_rows, empty=options.header)


def _names(record: Record, *, header: bool) -> list[str]:
    """The names of the columns, from the first record. Raises _Fault when it can give none."""
    if not header:
        if record.fault is not None:
            raise _Fault(*record.fault)
        return [f"c{index}" for index in range(len(record.fields))]
    if record.fault is not None and record.fault[0] == "truncated-stream":
        raise _Fault(*record.fault)
    try:
        _check_whole(record)
    except _Fault as fault:
        raise _Fault("damaged-file", f"the header cannot be read: {fault}") from None
    names = [(each or b"").decode() for each in record.fields]
    if "" in names:
        raise _Fault("damaged-file", f"the header has no name for column {names.index('') + 1}")
    twice = (
        next((name for name in names if names.count(name) > 1), None)
        if len(set(names)) < len(names)
        else None
    )
    if twice is not None:
        raise _Fault("damaged-file", f"the header has the column {_excerpt(twice)} more than once")
    return names


class _Table:
    """Makes rows of the records that come after the header."""

    def __init__(self, names: Sequence[str], dataset: Dataset, source: str) -> None:
        self._source = source
        self._width = len(names)
        wanted = list(names) if dataset.columns is None else dataset.columns
        kinds = {name: dataset.types.get(name, "string") for name in wanted}
        self._columns = Columns(tuple(wanted), kinds, dataset.missing)
        self._columns.check([])
        places = {name: index for index, name in enumerate(names)}
        self._taken = [(name, places[name], _VALUES[kinds[name]]) for name in kinds if name in places]

    def batches(self, records: Iterator[Record], batch_rows: int, *, empty: bool) -> Iterator[RowBatch]:
        """The batches; without any record one of no rows, if `empty`."""
        held: list[Record] = []
        size = 0
        for record in records:
            held.append(record)
            size += len(record.raw)
            if len(held) >= batch_rows or size >= BATCH_BYTES:
                yield self._batch(held)
                held, size, empty = [], 0, False
        if held or empty:
            yield self._batch(held)

    def _batch(self, records: Sequence[Record]) -> RowBatch:
        good: list[Record] = []
        rows: list[Row] = []
        bad: list[BadRow] = []
        for record in records:
            try:
                rows.append(self._row(record))
                good.append(record)
            except _Fault as fault:
                bad.append(_bad(self._source, record, fault))
        checked = self._columns.check(rows)
        lost = {each.index for each in checked.misfits}
        bad += [
            _bad(self._source, good[each.index], _Fault(each.kind, each.reason)) for each in checked.misfits
        ]
        bad.sort(key=lambda each: each.line)
        lines = [record.line for index, record in enumerate(good) if index not in lost]
        return RowBatch(
            lines,
            self._source,
            tuple(bad),
            given=checked.records,
            schema=self._columns.schema,
            text_bytes=sum(len(record.raw) for record in records),
        )

    def _row(self, record: Record) -> Row:
        _check_whole(record)
        fields = record.fields
        if len(fields) != self._width:
            raise _Fault("wrong-width", f"expected {self._width} fields, found {len(fields)}")
        return {name: _value(name, fields[index], value) for name, index, value in self._taken}


def _check_whole(record: Record) -> None:
    """Raises _Fault unless the record is one, of text without NUL."""
    if record.fault is not None:
        raise _Fault(*record.fault)
    raw = record.raw
    if b"\0" in raw:
        raise _Fault("nul", f"a NUL byte at byte {raw.index(0)} of the row")
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            raise _Fault("not-utf8", f"not UTF-8 at byte {error.start} of the row: {error.reason}") from None


def _value(name: str, field: Field, value: Callable[[str], object]) -> object:
    if field is None:
        return None
    text = field.decode()
    try:
        return value(text)
    except ValueError as error:
        raise _Fault("wrong-type", f"column {name}: expected {error}, found {_excerpt(text)}") from None


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("bool (true or false)")
    return text == "true"


def _int64(text: str) -> int:
    if not _INTEGER.fullmatch(text) or not -(2**63) <= (number := int(text)) < 2**63:
        raise ValueError("int64")
    return number


def _float64(text: str) -> float:
    if not _NUMBER.fullmatch(text) or not math.isfinite(number := float(text)):
        raise ValueError("float64 (finite)")
    return number


_VALUES: Mapping[str, Callable[[str], object]] = {
    "bool": _bool,
    "int64": _int64,
    "float64": _float64,
    "string": str,
}


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 3]}...")


def _bad(source: str, record: Record, fault: _Fault) -> BadRow:
    return BadRow(source, record.line, str(fault), record.kept, record.offset, fault.kind)


def _open(path: Path, codec: str, options: Mapping[str, object]) -> CsvPart:
    return CsvPart(path, codec, parse_options("csv", CsvOptions, options))


CSV = Format(
    name="csv",
    reader=ReadBackend(
        suffixes=tuple(f"{name}{codec}" for name in (".csv", ".tsv") for codec in ("", ".gz", ".zst")),
        read=read,
    ),
    writer=WriteBackend(
        codecs={
            None: (".csv", "none"),
            "none": (".csv", "none"),
            "gzip": (".csv.gz", "gzip"),
            "zstd": (".csv.zst", "zstd"),
        },
        unwritable=unwritable,
        open=_open,
        keeps_types=False,
    ),
)
