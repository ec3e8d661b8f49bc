"""The parquet format: row groups are streamed in, one file per part is written out.

Pages carry checksums, so that a damaged file is found rather than read as other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from treadle.errors import ArtifactError
from treadle.storage.atomic import abandon_file, finish_file
from treadle.storage.dataset import BadRow, Dataset, RowBatch, WorkUnit
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.schema import conform, widen

GROUP_ROWS = 65_536
GROUP_BYTES = 64 * 2**20
"""A row group is written at this many rows or bytes: few groups of short rows, bounded memory."""


def read(dataset: Dataset, unit: WorkUnit, batch_rows: int) -> Iterator[RowBatch]:
    """The rows of a file in batches; a file without rows gives one empty batch, which carries its columns.

    A damaged file gives the rows before the damage and one bad row, at line 0, with the reason. A row with a
    value that its type does not allow, such as text that is not UTF-8, is bad by itself.
    Raises ArtifactError when a declared column is missing, or a column read appears twice.
    """
    done = 0
    batch = _no_rows(pa.schema([]))
    try:
        with fsspec.open(unit.source, "rb") as stream, _open(stream) as file:
            schema = _projection(file.schema_arrow, dataset.columns, unit.source)
            batch = _no_rows(schema)
            for rows in file.iter_batches(min(batch_rows, GROUP_ROWS), columns=schema.names):
                batch = rows.select(schema.names)
                yield _judged(batch, done, unit.source)
                done += len(batch)
        if not done:
            yield RowBatch(batch, (), unit.source, ())
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk failed, or there is no such file; an OSError of Arrow itself has no errno
        bad = BadRow(unit.source, 0, f"not a whole parquet file, {done} rows could be read: {error}", "")
        yield RowBatch(batch.slice(0, 0), (), unit.source, (bad,))


def _judged(rows: pa.RecordBatch, before: int, source: str) -> RowBatch:
    """The rows that are valid, and those that are not; `before` rows of the file came earlier."""
    lines = range(before + 1, before + len(rows) + 1)
    try:
        rows.validate(full=True)
        return RowBatch(rows, tuple(lines), source, ())
    except pa.ArrowException:
        flaws = [_flaw(rows.slice(index, 1)) for index in range(len(rows))]
        if not any(flaws):
            raise
    kept = [index for index, flaw in enumerate(flaws) if flaw is None]
    bad = [
        BadRow(source, line, flaw, "") for line, flaw in zip(lines, flaws, strict=True) if flaw is not None
    ]
    return RowBatch(rows.take(pa.array(kept, pa.int64())), tuple(lines[i] for i in kept), source, tuple(bad))


def _flaw(row: pa.RecordBatch) -> str | None:
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            return f"column {name}: {error}"
    return None


def _open(stream: BinaryIO) -> pq.ParquetFile:
    return pq.ParquetFile(stream, page_checksum_verification=True)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _projection(schema: pa.Schema, columns: tuple[str, ...] | None, source: str) -> pa.Schema:
    wanted = list(dict.fromkeys(schema.names if columns is None else columns))
    for name in wanted:
        if (count := schema.names.count(name)) != 1:
            flaw = "is missing" if not count else f"appears {count} times"
            raise ArtifactError(f"{source}: column {name!r} {flaw}; the file has: {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in wanted])


class ParquetPart:
    """One open parquet file.

    Rows wait until they fill a row group, so that small batches do not make small groups. A schema that
    widens after a group was written makes the file be written anew under the wider one.
    """

    def __init__(self, path: Path, codec: str) -> None:
        self._path = path
        self._codec = codec
        self._schema = pa.schema([])
        self._waiting: list[pa.Table] = []
        self._file = path.open("xb")
        self._writer: pq.ParquetWriter | None = None
        self._written_schema = self._schema

    def write(self, rows: pa.Table) -> None:
        """Append rows. Raises pa.ArrowException when the schema changes other than by widening."""
        self._schema = widen(self._schema, rows.schema)
        self._waiting.append(rows)
        waiting_rows = sum(each.num_rows for each in self._waiting)
        if waiting_rows >= GROUP_ROWS or sum(each.nbytes for each in self._waiting) >= GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what waits, finish the file and sync it."""
        self._flush().close()
        finish_file(self._file)

    def abandon(self) -> None:
        """Let go of the file without another write, which could fail on a full disk."""
        if self._writer is not None:
            self._writer.is_open = False  # else it would write a footer when it is collected
        abandon_file(self._file)

    def _flush(self) -> pq.ParquetWriter:
        writer = self._writer_for_schema()
        if self._waiting:
            rows = pa.concat_tables([conform(each, self._schema) for each in self._waiting])
            writer.write_table(rows, row_group_size=GROUP_ROWS)
            self._waiting = []
        return writer

    def _writer_for_schema(self) -> pq.ParquetWriter:
        if self._writer is None:
            return self._start()
        if not self._written_schema.equals(self._schema):
            return self._start_again(self._writer)
        return self._writer

    def _start(self) -> pq.ParquetWriter:
        self._written_schema = self._schema
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            version="2.6",
            compression=self._codec,  # type: ignore[arg-type]  # one of PARQUET.writer.codecs
            write_page_checksum=True,
        )
        return self._writer

    def _start_again(self, writer: pq.ParquetWriter) -> pq.ParquetWriter:
        """Copy the file so far, row group by row group, under the wider schema."""
        writer.close()
        self._file.close()
        narrow = self._path.with_name(f"{self._path.name}.narrow")
        self._path.rename(narrow)
        self._file = self._path.open("xb")
        writer = self._start()
        with pq.ParquetFile(narrow) as old:
            for index in range(old.num_row_groups):
                writer.write_table(conform(old.read_row_group(index), self._schema))
        narrow.unlink()
        return writer


def unwritable(schema: pa.Schema) -> str | None:
    """Why parquet cannot hold that schema, naming the column; None when it can."""
    empty = (each.name for each in schema if _has_empty_struct(each.type))
    return next((f"column {name}: parquet has no object without fields" for name in empty), None)


def _has_empty_struct(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind) and kind.num_fields == 0:
        return True
    return any(_has_empty_struct(kind.field(index).type) for index in range(kind.num_fields))


PARQUET = Format(
    name="parquet",
    reader=ReadBackend(suffixes=(".parquet",), read=read),
    writer=WriteBackend(
        codecs={
            None: (".parquet", "zstd"),
            "zstd": (".parquet", "zstd"),
            "snappy": (".parquet", "snappy"),
            "none": (".parquet", "none"),
        },
        unwritable=unwritable,
        open=ParquetPart,
    ),
)
