"""The jsonl format: one JSON object a line, plain or gzip.

Reading: lines -> parsed rows -> rows that fit the unit's columns. Each of the three can refuse a row, and
only that row. Writing: null is written as null, keys in column order, gzip without a time or a name, so
the same rows give the same bytes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from treadle.storage.atomic import abandon_file, finish_file
from treadle.storage.columns import Columns
from treadle.storage.dataset import RAW_CHARACTERS, BadRow, Dataset, RowBatch, WorkUnit
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.json_line import BadLineError, Row, parse_line
from treadle.storage.lines import Line, read_lines

BATCH_BYTES = 64 * 2**20
"""A batch ends early at this much text, so that memory does not grow with the length of rows."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def read(dataset: Dataset, unit: WorkUnit, batch_rows: int) -> Iterator[RowBatch]:
    """The rows of a file, good and bad ones, `batch_rows` at a time; no batch for a file without rows."""
    columns = Columns(dataset.columns)
    for lines in _groups(read_lines(unit.source), batch_rows):
        yield _batch(unit.source, lines, columns)


def _groups(lines: Iterable[Line], batch_rows: int) -> Iterator[list[Line]]:
    group: list[Line] = []
    size = 0
    for line in lines:
        if line.blank:
            continue
        group.append(line)
        size += len(line.raw)
        if len(group) >= batch_rows or size >= BATCH_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _batch(source: str, lines: list[Line], columns: Columns) -> RowBatch:
    parsed: list[tuple[Line, Row]] = []
    bad: list[BadRow] = []
    for line in lines:
        try:
            parsed.append((line, _parse(line)))
        except BadLineError as error:
            bad.append(_bad_row(source, line, str(error)))
    batch, misfits = columns.fit([row for _, row in parsed])
    bad += [_bad_row(source, parsed[each.index][0], each.reason) for each in misfits]
    lost = {each.index for each in misfits}
    kept = tuple(line.number for index, (line, _) in enumerate(parsed) if index not in lost)
    return RowBatch(batch, kept, source, tuple(sorted(bad, key=lambda each: each.line)))


def _parse(line: Line) -> Row:
    if line.broken is not None:
        raise BadLineError(line.broken)
    return parse_line(line.raw)


def _bad_row(source: str, line: Line, reason: str) -> BadRow:
    # Four bytes a character at most, and the last one may be cut; bytes that are no UTF-8 become \xNN.
    text = line.raw[: 4 * RAW_CHARACTERS + 3].decode("utf-8", "backslashreplace")
    return BadRow(source, line.number, reason, text[:RAW_CHARACTERS])


class JsonlPart:
    """One open jsonl file, plain or (`codec` "gzip") compressed."""

    def __init__(self, path: Path, codec: str) -> None:
        self._file = path.open("xb")
        self._gzip: gzip.GzipFile | None = None
        if codec == "gzip":
            self._gzip = gzip.GzipFile("", "wb", compresslevel=6, fileobj=self._file, mtime=0)

    def write(self, rows: pa.Table) -> None:
        """Append one line a row. Raises ValueError at a NaN or an infinity, which JSON does not have."""
        stream = self._gzip or self._file
        for batch in rows.to_batches(max_chunksize=1024):
            stream.write("".join(map(_line, batch.to_pylist())).encode())

    def close(self) -> None:
        """Finish the file and sync it."""
        if self._gzip is not None:
            self._gzip.close()
        finish_file(self._file)

    def abandon(self) -> None:
        """Let go of the file without another write, which could fail on a full disk."""
        if self._gzip is not None:
            # Else it would write its end when it is collected.
            self._gzip.fileobj = None  # type: ignore[assignment]
        abandon_file(self._file)


def _line(row: Row) -> str:
    try:
        return f"{_ENCODER.encode(row)}\n"
    except ValueError as error:
        name = next(name for name, value in row.items() if not _encodes(value))
        raise ValueError(f"column {name}: {error}") from error


def _encodes(value: object) -> bool:
    try:
        _ENCODER.encode(value)
    except ValueError:
        return False
    return True


def unwritable(schema: pa.Schema) -> str | None:
    """Why rows of that schema have no form in JSON, naming the column; None when they have one."""
    found = ((each.name, _no_json(each.type)) for each in schema)
    return next((f"column {name}: {kind} has no JSON form" for name, kind in found if kind is not None), None)


def _no_json(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(kind):
        return next((inner for each in kind if (inner := _no_json(each.type)) is not None), None)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _no_json(kind.value_type)
    plain = (pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, _is_text)
    return None if any(test(kind) for test in plain) else kind


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


JSONL = Format(
    name="jsonl",
    reader=ReadBackend(suffixes=(".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"), read=read),
    writer=WriteBackend(
        codecs={None: (".jsonl", "none"), "none": (".jsonl", "none"), "gzip": (".jsonl.gz", "gzip")},
        unwritable=unwritable,
        open=JsonlPart,
    ),
)
