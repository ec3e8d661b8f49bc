"""The jsonl format: one JSON object a line, plain, gzip or zstd.

Reading: lines -> parsed rows -> rows that fit the unit's columns. Each of the three can refuse a row, and
only that row. Writing: null is written as null, keys in column order, gzip without a time or a name, so
the same rows give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from treadle.storage.columns import Columns, Misfit
from treadle.storage.compression import OutputStream
from treadle.storage.dataset import RAW_BYTES, BadRow, Dataset, Record, RowBatch, Rows, WorkUnit
from treadle.storage.formats.byte_parts import split_bytes
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.formats.json_rows import dump_rows
from treadle.storage.grid import Grid, grid_of
from treadle.storage.json_lines import parse_lines
from treadle.storage.lines import Lines, read_lines
from treadle.storage.schema import conform, widen

_WRITE_ROWS = 1024
_LEARNT = "; the first value says the type of a column unless inputs.NAME.types declares it"


def read(dataset: Dataset, unit: WorkUnit, batch_rows: int) -> Iterator[RowBatch]:
    """The rows of a unit, good and bad ones, `batch_rows` at a time; no batch for a file without rows."""
    columns = Columns(dataset.columns, dataset.types, dataset.missing)
    for batch in map(partial(_batch, unit.source, columns), read_lines(unit.source, batch_rows, unit.part)):
        if batch.num_rows or batch.bad:
            yield batch
        del batch


def _batch(source: str, columns: Columns, lines: Lines) -> RowBatch:
    bad: dict[int, tuple[str, str]] = {}
    whole = lines.raws
    if lines.broken is not None:
        whole = whole[:-1]
        bad[len(whole)] = lines.broken
    parsed = parse_lines(whole)
    checked = columns.check(parsed.rows, parsed.grid)
    bad |= {at: (flaw.kind, str(flaw)) for at, flaw in parsed.flaws.items()}
    lost = {parsed.places[each.index]: (each.kind, _reason(each)) for each in checked.misfits}
    kept = [at for at in parsed.places if at not in lost] if lost else parsed.places
    bad |= lost
    found = tuple(_bad_row(source, lines, at, *bad[at]) for at in sorted(bad))
    return RowBatch(
        lines.numbers_at(kept),
        source,
        found,
        given=checked.records,
        schema=columns.schema,
        text_bytes=lines.size,
    )


def _reason(misfit: Misfit) -> str:
    """Why the row is bad; and what to do when it is the first row of the unit that is odd, not this one."""
    return f"{misfit.reason}{_LEARNT}" if misfit.learnt else misfit.reason


def _bad_row(source: str, lines: Lines, index: int, kind: str, reason: str) -> BadRow:
    raw = lines.raws[index].removesuffix(b"\n").removesuffix(b"\r")[:RAW_BYTES]
    return BadRow(source, lines.numbers[index], reason, raw, lines.offset_at(index), kind)


class JsonlPart:
    """One open jsonl file, plain or compressed.

    Each line has all columns that were written so far, in order of appearance.
    """

    def __init__(self, path: Path, codec: str) -> None:
        self._stream = OutputStream(path, codec)
        self._columns = Columns()
        self.schema = pa.schema([])

    def write(self, rows: Rows) -> None:
        """Append one line a row.

        Raises ValueError naming the column at what JSON does not have, such as NaN, and at two types in one
        column; pa.ArrowException when a schema changes other than by widening.
        """
        if isinstance(rows, (pa.RecordBatch, pa.Table)) and rows.num_columns == 0:
            rows = [{}] * rows.num_rows  # Arrow would lose them
        if isinstance(rows, (pa.RecordBatch, pa.Table)):
            self._widen(rows.schema)
            table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
            for batch in conform(table, self.schema).to_batches(_WRITE_ROWS):
                records = batch.to_pylist()
                self._append(records, grid_of(records))
        else:
            grid = grid_of(rows)
            self._learn(rows, grid)
            self._append(rows, grid)

    def close(self) -> None:
        """Finish the file and sync it."""
        self._stream.close()

    def abandon(self) -> None:
        """Let go of the file without another write, which could fail on a full disk."""
        self._stream.abandon()

    def _append(self, rows: Sequence[Record], grid: Grid) -> None:
        for piece in dump_rows(rows, grid, self.schema):
            self._stream.write(piece)

    def _learn(self, rows: Sequence[Record], grid: Grid) -> None:
        """Widen the columns by those that a table of the rows would have."""
        if self._columns.settled(grid):
            return
        found = Columns()
        misfits = found.check(rows, grid).misfits
        if misfits:
            raise ValueError(f"row {misfits[0].index}: {misfits[0].reason}")
        self._widen(found.schema)

    def _widen(self, schema: pa.Schema) -> None:
        known, self.schema = self.schema, widen(self.schema, schema)
        if self.schema is not known:
            self._columns = Columns(schema=self.schema)


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


def differs(schema: pa.Schema, all_: pa.Schema) -> bool:
    """Whether lines of rows of `schema` look another way than they would under that of all files."""
    # A null looks the same whatever its type, and the order of keys says nothing.
    kinds = {each.name: each.type for each in all_}
    typed = [each for each in schema if not pa.types.is_null(each.type)]
    return len(schema) < len(kinds) or any(each.type != kinds[each.name] for each in typed)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


JSONL = Format(
    name="jsonl",
    reader=ReadBackend(
        suffixes=tuple(f"{name}{codec}" for name in (".jsonl", ".ndjson") for codec in ("", ".gz", ".zst")),
        read=read,
        split=split_bytes,
    ),
    writer=WriteBackend(
        codecs={
            None: (".jsonl", "none"),
            "none": (".jsonl", "none"),
            "gzip": (".jsonl.gz", "gzip"),
            "zstd": (".jsonl.zst", "zstd"),
        },
        unwritable=unwritable,
        open=lambda path, codec, _: JsonlPart(path, codec),
        differs=differs,
    ),
)
