"""The arrow format: the IPC file format of Apache Arrow, whose record batches can be read by number.

One write of at most `BATCH_ROWS` rows makes one record batch, also one of no rows, so whoever writes in an
agreed order can find each part again.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from treadle.storage.atomic import abandon_file, finish_file, is_remote
from treadle.storage.dataset import Dataset, RowBatch, Rows, WorkUnit
from treadle.storage.formats.format import Format, Part, ReadBackend, WriteBackend
from treadle.storage.formats.view import View, as_table, damaged, in_file, parts_of
from treadle.storage.lines import BATCH_BYTES
from treadle.storage.schema import conform, widen
from treadle.storage.source_file import open_source

BATCH_ROWS = 65_536
_MAGIC = b"ARROW1\0\0"


def read(dataset: Dataset, unit: WorkUnit, batch_rows: int) -> Iterator[RowBatch]:
    """The rows of a unit in batches; a file without rows gives one empty batch, which carries its columns.

    A damaged file gives the rows before the damage and one bad row, at line 0, with the reason. The format
    has no check sums: what is found is what breaks its structure, not one value that became another. Which
    rows are bad by themselves: as in a parquet file. Raises ArtifactError when a column that is read appears
    twice.
    """
    done = first = 0
    try:
        with open_source(unit.source) as opened:
            stream = _Bounded(opened)
            schema, first, batches = _batches(stream, unit.part)
            done = first
            view = View(schema, dataset, unit.source)
            for whole in batches:
                _check(whole)
                for rows in _sliced(whole.select(view.read), batch_rows):
                    yield view.judged(rows, done)
                    done += rows.num_rows
        if done == first:
            yield view.empty()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk failed, or there is no such file; an OSError of Arrow itself has no errno
        yield damaged(unit.source, f"not a whole arrow file, {done - first} rows could be read: {error}")


class _Bounded(io.RawIOBase):
    """A file of which no more is asked than it has: memory for a damaged length would be reserved first."""

    def __init__(self, inner: BinaryIO) -> None:
        self._inner = inner
        self._size = inner.seek(0, io.SEEK_END)
        inner.seek(0)

    def read(self, size: int = -1, /) -> bytes:
        rest = max(0, self._size - self._inner.tell())
        return self._inner.read(rest if size < 0 else min(size, rest))

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class _Batches(NamedTuple):
    """The schema of a file, how many of its rows come before, and the record batches to read."""

    schema: pa.Schema
    before: int
    batches: Iterator[pa.RecordBatch]


def _batches(stream: _Bounded, part: tuple[int, int] | None) -> _Batches:
    if part is None:
        return _all_batches(stream)
    file = _open(stream)
    # One column is enough to count rows.
    narrow = _open(stream, pa.ipc.IpcReadOptions(included_fields=[0]))
    before = sum(narrow.get_batch(each).num_rows for each in range(part[0]))
    return _Batches(file.schema, before, map(file.get_batch, range(*part)))


def _all_batches(stream: _Bounded) -> _Batches:
    """The batches in order, without the footer, which is only compared: it may be damaged, or cut off.

    Behind eight bytes an arrow file is a stream of its batches.
    """
    damage: Exception | None = None
    footer: pa.RecordBatchFileReader | None = None
    try:
        footer = _open(stream)
    except (pa.ArrowException, OSError) as error:
        damage = error
        stream.seek(0)
        if getattr(error, "errno", None) is not None or stream.read(len(_MAGIC)) != _MAGIC:
            raise
    stream.seek(len(_MAGIC))
    batches = pa.ipc.open_stream(stream)
    if footer is not None and not footer.schema.equals(batches.schema, check_metadata=True):
        raise pa.ArrowInvalid("the schema at its begin is not that at its end")
    return _Batches(batches.schema, 0, _until(batches, damage, footer))


def _until(
    batches: Iterable[pa.RecordBatch], damage: Exception | None, footer: pa.RecordBatchFileReader | None
) -> Iterator[pa.RecordBatch]:
    count = 0
    for batch in batches:
        yield batch
        count += 1
    if damage is not None:
        raise damage
    if footer is not None and count != footer.num_record_batches:
        raise pa.ArrowInvalid(
            f"its footer tells of {footer.num_record_batches} record batches, found {count}"
        )


def _open(stream: _Bounded, options: pa.ipc.IpcReadOptions | None = None) -> pa.RecordBatchFileReader:
    return pa.ipc.open_file(stream, options=options)


def _check(batch: pa.RecordBatch) -> None:
    """Raises pa.ArrowException when a batch is not one; text that is not UTF-8 is judged later, by row."""
    for column in batch.columns:
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            if "UTF8" not in str(error):
                raise


def _sliced(batch: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    size = max(1, min(batch_rows, batch.num_rows, BATCH_BYTES * batch.num_rows // max(1, batch.nbytes)))
    return (batch.slice(start, size) for start in range(0, batch.num_rows, size))


def split(dataset: Dataset, unit: WorkUnit) -> Sequence[Part]:
    """Ranges of record batches of about `dataset.split_bytes` each. A damaged file is left whole."""
    try:
        with _source(unit.source) as source, pa.ipc.open_file(source) as file:
            sizes = [file.get_batch(each).nbytes for each in range(file.num_record_batches)]
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return ()  # its damage is told when it is read
    return tuple(parts_of(in_file(sizes, unit.bytes), dataset.split_bytes or 0))


def read_arrow_batches(path: str, numbers: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Record batches of a file by their numbers, from 0, in that order. A local file is memory-mapped."""
    with _source(path) as source, pa.ipc.open_file(source) as file:
        for number in numbers:
            yield file.get_batch(number)


def count_arrow_batches(path: str) -> int:
    """How many record batches a file has."""
    with _source(path) as source, pa.ipc.open_file(source) as file:
        return file.num_record_batches


def _source(path: str) -> Any:
    return open_source(path) if is_remote(path) else pa.memory_map(path)


class ArrowPart:
    """One open arrow file. A schema that widens after a batch was written makes the file be written anew."""

    def __init__(self, path: Path, codec: str) -> None:
        self._path = path
        name: Any = None if codec == "none" else codec
        self._options = pa.ipc.IpcWriteOptions(compression=name)
        self.schema = pa.schema([])
        self._file = path.open("xb")
        self._writer: pa.RecordBatchFileWriter | None = None

    def write(self, rows: Rows) -> None:
        """Append rows.

        Raises ValueError for rows without any column, pa.ArrowException when the schema changes other than by
        widening.
        """
        table = _plain(as_table(rows))
        wider = widen(self.schema, table.schema)
        if table.num_rows and not wider.names:
            raise ValueError("rows without any column: arrow cannot hold them")
        if self._writer is not None and not wider.equals(self.schema):
            self._start_again(self._writer, wider)
        self.schema = wider
        self._append(conform(table, wider))

    def close(self) -> None:
        """Finish the file and sync it."""
        self._open_writer().close()
        finish_file(self._file)

    def abandon(self) -> None:
        """Let go of the file without another write, which could fail on a full disk."""
        abandon_file(self._file)

    def _append(self, table: pa.Table) -> None:
        writer = self._open_writer()
        whole = table.combine_chunks()
        for start in range(0, max(1, whole.num_rows), BATCH_ROWS):
            part = whole.slice(start, BATCH_ROWS)
            batches = part.to_batches() or [pa.RecordBatch.from_pylist([], schema=self.schema)]
            for batch in batches:
                writer.write_batch(batch)

    def _open_writer(self) -> pa.RecordBatchFileWriter:
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._file, self.schema, options=self._options)
        return self._writer

    def _start_again(self, writer: pa.RecordBatchFileWriter, schema: pa.Schema) -> None:
        """Copy the file so far, batch by batch, under the wider schema."""
        writer.close()
        self._file.close()
        narrow = self._path.with_name(f"{self._path.name}.narrow")
        self._path.rename(narrow)
        self._file = self._path.open("xb")
        self.schema, self._writer = schema, None
        with pa.memory_map(str(narrow)) as source, pa.ipc.open_file(source) as old:
            for number in range(old.num_record_batches):
                self._append(conform(pa.table(old.get_batch(number)), schema))
        narrow.unlink()


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, of which a file holds one a column: batches come with different ones."""
    for at, field in enumerate(table.schema):
        if isinstance(field.type, pa.DictionaryType):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def unwritable(schema: pa.Schema) -> str | None:  # noqa: ARG001 - as for other formats
    """None: the format holds every type."""
    return None


ARROW = Format(
    name="arrow",
    reader=ReadBackend(suffixes=(".arrow",), read=read, split=split),
    writer=WriteBackend(
        codecs={
            None: (".arrow", "none"),
            "none": (".arrow", "none"),
            "lz4": (".arrow", "lz4"),
            "zstd": (".arrow", "zstd"),
        },
        unwritable=unwritable,
        open=lambda path, codec, _: ArrowPart(path, codec),
    ),
)
