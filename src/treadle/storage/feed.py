"""The reading side of a run: a dataset is cut into units, and a unit is streamed in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import fsspec
import pyarrow as pa
from fsspec.spec import AbstractFileSystem

from treadle.errors import ArgumentError, ArtifactError, BadRowError
from treadle.storage.dataset import Dataset, RowBatch, WorkUnit
from treadle.storage.formats.backends import read_backend_for
from treadle.storage.output_manifest import MANIFEST_NAME, read_output_manifest
from treadle.storage.schema import conform, widen


def list_units(dataset: Dataset) -> tuple[WorkUnit, ...]:
    """One unit a file, sorted by path. A committed output without files has no units.

    Raises ArgumentError when nothing matches the path, or a committed output has another backend;
    ArtifactError when a committed output does not have exactly the files, by name and size, of its manifest.
    """
    suffixes = read_backend_for(dataset.backend).suffixes
    system, path = _located(dataset)
    sizes = _sizes(system, path, suffixes)
    committed = system.isdir(path) and system.exists(f"{path}/{MANIFEST_NAME}")
    if committed:
        _check_committed(dataset, sizes)
    elif not sizes:
        wanted = f"a file, a glob, or a folder with files named *{', *'.join(suffixes)}"
        raise ArgumentError(f"no {dataset.backend} file at {dataset.path}; expected {wanted}")
    return tuple(_unit(index, name, sizes[name], dataset, system) for index, name in enumerate(sorted(sizes)))


def read_batches(dataset: Dataset, unit: WorkUnit, batch_rows: int = 1024) -> Iterator[RowBatch]:
    """The rows of a unit in order, at most `batch_rows` at a time. Memory does not grow with the file.

    Bad rows are reported in the batches, not raised; see the formats for what is bad. A file without rows
    gives no batch, or an empty one. Raises FileNotFoundError when the file is gone, ArtifactError for a
    missing column of a parquet file, ArgumentError when `batch_rows` < 1.
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


def _located(dataset: Dataset) -> tuple[AbstractFileSystem, str]:
    """The file system and the path on it. Raises ArgumentError for one that cannot be used here."""
    try:
        system, path = fsspec.core.url_to_fs(dataset.path)
    except (ImportError, ValueError) as error:  # a package it needs is missing, or nobody knows the scheme
        raise ArgumentError(f"cannot read {dataset.path}: {error}") from error
    return system, path


def _all_batches(dataset: Dataset) -> Iterator[RowBatch]:
    for unit in list_units(dataset):
        for batch in read_batches(dataset, unit):
            for bad in batch.bad[:1]:
                raise BadRowError(bad.source, bad.line, bad.reason)
            yield batch


def _unit(index: int, path: str, size: int, dataset: Dataset, system: AbstractFileSystem) -> WorkUnit:
    source = system.unstrip_protocol(path) if "://" in dataset.path else path
    return WorkUnit(f"{index:05d}-{_stem(path)}", index, source, size)


def _sizes(system: AbstractFileSystem, path: str, suffixes: tuple[str, ...]) -> dict[str, int]:
    """Path -> bytes of each file of a dataset."""
    if system.isdir(path):
        listing = system.ls(path, detail=True)
        return {each["name"]: each["size"] for each in listing if _is_data(each, suffixes)}
    # An existing name is that file, even if it contains pattern characters.
    listing = [system.info(path)] if system.exists(path) else system.glob(path, detail=True).values()
    return {each["name"]: each["size"] for each in listing if each["type"] == "file"}


def _is_data(info: Mapping[str, Any], suffixes: tuple[str, ...]) -> bool:
    name = _file_name(info["name"])
    if info["type"] == "directory" or not name.endswith(suffixes) or name.startswith((".", "_")):
        return False
    if info["type"] != "file":
        # Skipping a link whose file is gone would lose its rows silently.
        raise ArgumentError(f"{info['name']}: expected a file, found a link to nothing, a pipe or a device")
    return True


def _check_committed(dataset: Dataset, sizes: Mapping[str, int]) -> None:
    """Compare what lies in an output folder with its manifest."""
    manifest = read_output_manifest(dataset.path)
    if manifest.backend != dataset.backend:
        raise ArgumentError(f"{dataset.path}: expected {dataset.backend} files, it holds {manifest.backend}")
    expected = {each.name: each.bytes for each in manifest.files}
    found = {_file_name(path): size for path, size in sizes.items()}
    for name in sorted(expected | found):
        if expected.get(name) != found.get(name):
            raise ArtifactError(
                f"{dataset.path}: {name}: expected {_in_bytes(expected.get(name))} by {MANIFEST_NAME}, "
                f"found {_in_bytes(found.get(name))}; remove the output and run again the step that makes it"
            )


def _in_bytes(size: int | None) -> str:
    return "no file" if size is None else f"{size:,} bytes"


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _stem(path: str) -> str:
    return _file_name(path).removesuffix(".gz").rsplit(".", 1)[0]
