"""The reading side of a run: a dataset is cut into units, and a unit is streamed in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from treadle.errors import ArgumentError, ArtifactError, BadRowError
from treadle.storage.compression import codec_of, without_codec
from treadle.storage.dataset import Dataset, RowBatch, WorkUnit
from treadle.storage.formats.backends import read_backend_for
from treadle.storage.formats.format import ReadBackend
from treadle.storage.http_client import file_part
from treadle.storage.listing import SourceFile, list_files
from treadle.storage.schema import conform, widen

USUAL_BATCH_ROWS = 1024


def list_units(dataset: Dataset) -> tuple[WorkUnit, ...]:
    """The units of a dataset: its files sorted by path, those of a committed output as its manifest has them.

    A file without compression that is larger than `split_bytes` gives several units where its format can be
    read in parts, and its server gives parts. A committed output without files has no units.

    Raises:
        ArgumentError: nothing matches the path, it cannot be read, an output there is not yet committed or
            has another format, or `split_bytes` is less than 1.
        ArtifactError: a committed output does not have exactly the files, by name and size, of its manifest.
        RunError: the storage cannot be reached, or refuses.
    """
    backend = read_backend_for(dataset.backend)
    if backend.list_units is not None:
        return backend.list_units(dataset)
    if dataset.split_bytes is not None and dataset.split_bytes < 1:
        raise ArgumentError(f"split_bytes: expected at least 1, got {dataset.split_bytes}")
    files = list_files(dataset, backend.suffixes)
    parts = [part for at, file in enumerate(files) for part in _parts(dataset, at, file, backend)]
    # The number in front is that of the unit among all, so that names sort as the units do.
    return tuple(replace(part, id=f"{at:05d}-{part.id}", index=at) for at, part in enumerate(parts))


def read_batches(dataset: Dataset, unit: WorkUnit, batch_rows: int = USUAL_BATCH_ROWS) -> Iterator[RowBatch]:
    """The rows of a unit in order, at most `batch_rows` at a time. Memory does not grow with the file.

    Bad rows are reported in the batches, not raised; see the formats for what is bad. A file without rows
    gives no batch, or an empty one. Raises FileNotFoundError when the file is gone, another OSError when its
    storage fails, ArgumentError when `batch_rows` < 1.
    """
    if batch_rows < 1:
        raise ArgumentError(f"batch_rows: expected at least 1, got {batch_rows}")
    return read_backend_for(dataset.backend).read(dataset, unit, batch_rows)


def read_table(dataset: Dataset) -> pa.Table:
    """All rows of a small dataset as one table, in unit order.

    Raises BadRowError at the first bad row, ArtifactError when its files have types that do not go together.
    """
    tables = [pa.Table.from_batches([each.rows]) for each in _all_batches(dataset)]
    schema = pa.schema([(name, pa.null()) for name in dataset.columns or ()])
    try:
        for each in tables:
            schema = widen(schema, each.schema)
        return pa.concat_tables([schema.empty_table(), *(conform(each, schema) for each in tables)])
    except pa.ArrowException as error:
        raise ArtifactError(f"{dataset.path}: its files do not go together: {error}") from error


def _all_batches(dataset: Dataset) -> Iterator[RowBatch]:
    for unit in list_units(dataset):
        for batch in read_batches(dataset, unit):
            for bad in batch.bad[:1]:
                raise BadRowError(bad.source, bad.line, bad.reason, bad.offset, bad.kind)
            yield batch


def _parts(dataset: Dataset, index: int, file: SourceFile, backend: ReadBackend) -> Sequence[WorkUnit]:
    """The file in parts, or as it is; the number of each unit is put before its name later."""
    stem = _stem(file.source)
    identity = f"{file.source} {file.bytes} {file.version}" if file.version else ""
    whole = WorkUnit(stem, index, file.source, file.bytes, identity)
    limit = dataset.split_bytes
    if backend.split is None or limit is None or file.bytes <= limit:
        return (whole,)
    can_be_cut = file.parts and codec_of(file.source) == "none"
    parts = backend.split(dataset, whole) if can_be_cut else ()
    if len(parts) < 2:
        return (whole,)
    return [
        replace(
            whole,
            id=f"{stem}@{part.first}",
            bytes=part.bytes,
            identity=identity and f"{identity} {part.first}-{part.end}",
            part=(part.first, part.end),
        )
        for part in parts
    ]


def _stem(source: str) -> str:
    return without_codec(file_part(source).rsplit("/", 1)[-1]).rsplit(".", 1)[0]
