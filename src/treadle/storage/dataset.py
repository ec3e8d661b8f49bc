"""The nouns of storage: a dataset, the units of work it is cut into, the batches of rows of a unit."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

RAW_CHARACTERS = 2_000
"""A bad row is quoted up to this length."""


@dataclass(frozen=True)
class Dataset:
    """Where rows are and in which format.

    `path` is a file, a folder or a glob on any fsspec path to read; a local folder to write. `columns` are
    the columns to read (None: all). `compression` is for writing (None: the default of the format).
    """

    backend: str
    path: str
    columns: tuple[str, ...] | None = None
    compression: str | None = None


@dataclass(frozen=True)
class WorkUnit:
    """One file of a dataset. `id` is stable for the same set of files: "00003-<file stem>"."""

    id: str
    index: int
    source: str
    bytes: int


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used.

    `line` counts from 1; 0 stands for the whole file. `raw` is the text of the row, cut to
    `RAW_CHARACTERS`.
    """

    source: str
    line: int
    reason: str
    raw: str


@dataclass(frozen=True)
class RowBatch:
    """Some rows of one unit, in order, and the bad rows met on the way.

    `lines` has the line of each row, from 1; in a parquet file that is the number of the row. `rows` may be
    empty when `bad` is not. Within a unit a later batch may have more columns, and a type where an earlier
    batch had only nulls; no other change of type happens.
    """

    rows: pa.RecordBatch
    lines: tuple[int, ...]
    source: str
    bad: tuple[BadRow, ...]
