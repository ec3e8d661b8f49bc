"""The parquet format: row groups are streamed in, one file per part is written out.

Pages carry checksums, so that a damaged file is found rather than read as other rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from treadle.storage.atomic import abandon_file, finish_file, is_remote
from treadle.storage.dataset import Dataset, RowBatch, Rows, WorkUnit
from treadle.storage.formats.format import Format, Part, ReadBackend, WriteBackend
from treadle.storage.formats.view import View, as_table, damaged, in_file, parts_of
from treadle.storage.lines import BATCH_BYTES
from treadle.storage.schema import conform, widen
from treadle.storage.source_file import open_source

GROUP_ROWS = 65_536
GROUP_BYTES = 16 * 2**20
"""A row group is written at this many rows or bytes: few groups of short rows, bounded memory."""

_BUFFER = 256 * 2**10
"""A local file is read by so much of a column at a time, or a whole column of a row group would be held."""


def read(dataset: Dataset, unit: WorkUnit, batch_rows: int) -> Iterator[RowBatch]:
    """The rows of a unit in batches; a file without rows gives one empty batch, which carries its columns.

    A damaged file gives the rows before the damage and one bad row, at line 0, with the reason. A row with a
    value that its type does not allow, such as text that is not UTF-8, is bad by itself; so is one whose
    value is not of the declared type, and every row of a file that lacks a declared column.

    Raises ArtifactError when a column that is read appears twice.
    """
    done = first = 0
    try:
        with open_source(unit.source) as stream, _open(stream, unit.source) as file:
            groups = range(*(unit.part or (0, file.num_row_groups)))
            done = first = sum(file.metadata.row_group(each).num_rows for each in range(groups.start))
            view = View(file.schema_arrow, dataset, unit.source)
            names = view.read
            size = min(batch_rows, GROUP_ROWS, _rows_at_once(file.metadata, groups, names))
            for rows in file.iter_batches(size, row_groups=list(groups), columns=names):
                yield view.judged(rows.select(names), done)
                done += len(rows)
            expected = sum(file.metadata.row_group(each).num_rows for each in groups)
        if done - first != expected:
            # The head of a page, which no check sum covers, was damaged.
            raise pa.ArrowInvalid(f"{expected} rows were expected")
        if done == first:
            yield view.empty()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk failed, or there is no such file; an OSError of Arrow itself has no errno
        yield damaged(unit.source, f"not a whole parquet file, {done - first} rows could be read: {error}")


def split(dataset: Dataset, unit: WorkUnit) -> Sequence[Part]:
    """Ranges of row groups of about `dataset.split_bytes` each. A damaged file is left whole."""
    try:
        with open_source(unit.source) as stream, _open(stream, unit.source) as file:
            metadata = file.metadata
            sizes = [metadata.row_group(each).total_byte_size for each in range(metadata.num_row_groups)]
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return ()  # its damage is told when it is read
    return tuple(parts_of(in_file(sizes, unit.bytes), dataset.split_bytes or 0))


def _open(stream: BinaryIO, path: str) -> pq.ParquetFile:
    # Over a network many small reads cost more than memory.
    buffer = 0 if is_remote(path) else _BUFFER
    return pq.ParquetFile(stream, page_checksum_verification=True, buffer_size=buffer, pre_buffer=not buffer)


def _rows_at_once(metadata: pq.FileMetaData, groups: Sequence[int], names: Sequence[str]) -> int:
    """How many rows of the first of the groups make up `BATCH_BYTES`, in the columns that are read."""
    first = next((metadata.row_group(each) for each in groups if metadata.row_group(each).num_rows), None)
    if first is None:
        return GROUP_ROWS
    columns = map(first.column, range(first.num_columns))
    size = sum(each.total_uncompressed_size for each in columns if each.path_in_schema.split(".")[0] in names)
    return max(1, BATCH_BYTES * first.num_rows // max(1, size))


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

    @property
    def schema(self) -> pa.Schema:
        """The columns of all that was written so far."""
        return self._schema

    def write(self, rows: Rows) -> None:
        """Append rows.

        Raises ValueError for rows without any column, pa.ArrowException when the schema changes other than by
        widening.
        """
        rows = as_table(rows)
        self._schema = widen(self._schema, rows.schema)
        if rows.num_rows and not self._schema.names:
            raise ValueError("rows without any column: parquet cannot hold them")
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
    reader=ReadBackend(suffixes=(".parquet",), read=read, split=split),
    writer=WriteBackend(
        codecs={
            None: (".parquet", "zstd"),
            "zstd": (".parquet", "zstd"),
            "snappy": (".parquet", "snappy"),
            "none": (".parquet", "none"),
        },
        unwritable=unwritable,
        open=lambda path, codec, _: ParquetPart(path, codec),
    ),
)
