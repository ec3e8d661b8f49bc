"""What a format is: how to read a unit of it as batches of rows, and how to write one part file of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from treadle.errors import UnknownNameError
from treadle.storage.dataset import Dataset, RowBatch, WorkUnit


class PartWriter(Protocol):
    """One open part file. The same writes give the same bytes."""

    def write(self, rows: pa.Table) -> None:
        """Append rows. A schema that only widens the one so far (see `RowBatch`) is accepted."""

    def close(self) -> None:
        """Finish the file: after this it is whole and synced to disk."""

    def abandon(self) -> None:
        """Let go of the file without finishing it; never raises. Does nothing after `close`."""


@dataclass(frozen=True)
class ReadBackend:
    """How a unit is read.

    `read(dataset, unit, batch_rows)` streams it; `suffixes` tell which files of a folder are of the format.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Dataset, WorkUnit, int], Iterator[RowBatch]]


@dataclass(frozen=True)
class WriteBackend:
    """How part files are written.

    `codecs` maps a compression to (file suffix, codec of the format), `unwritable(schema)` says why rows
    of that schema cannot be written (None: they can), `open(path, codec)` starts a part file.
    """

    codecs: Mapping[str | None, tuple[str, str]]
    unwritable: Callable[[pa.Schema], str | None]
    open: Callable[[Path, str], PartWriter]

    def codec(self, compression: str | None) -> tuple[str, str]:
        """The (file suffix, codec) of a compression; UnknownNameError lists the known ones."""
        if compression not in self.codecs:
            raise UnknownNameError("compression", compression, [name for name in self.codecs if name])
        return self.codecs[compression]


@dataclass(frozen=True)
class Format:
    """A name that a dataset can give as its backend."""

    name: str
    reader: ReadBackend
    writer: WriteBackend
