"""What a format is: how to read a unit of it as batches of rows, and how to write one part file of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from treadle.errors import UnknownNameError
from treadle.storage.dataset import Dataset, OutputSpec, RowBatch, Rows, WorkUnit

if TYPE_CHECKING:
    import pyarrow as pa


class Part(NamedTuple):
    """A part of a file: the first and the end of its bytes, row groups or batches, and its size in bytes."""

    first: int
    end: int
    bytes: int


class PartWriter(Protocol):
    """One open part file. The same writes give the same bytes."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of all that was written so far."""

    def write(self, rows: Rows) -> None:
        """Append rows. A schema that only widens the one so far (see `RowBatch`) is accepted.

        Raises ValueError (pa.ArrowException may be one) naming the column when the format cannot hold them.
        """

    def close(self) -> None:
        """Finish the file: after this it is whole and synced to disk."""

    def abandon(self) -> None:
        """Let go of the file without finishing it; never raises. Does nothing after `close`."""


@dataclass(frozen=True)
class ReadBackend:
    """How a unit is read.

    `read(dataset, unit, batch_rows)` streams it; `suffixes` tell which files of a folder are of the format.
    `split(dataset, unit)` cuts a whole file that is larger than `dataset.split_bytes`; fewer than two parts
    leave it whole. A format without files, such as a database, lists its own units by `list_units`.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Dataset, WorkUnit, int], Iterator[RowBatch]]
    split: Callable[[Dataset, WorkUnit], Sequence[Part]] | None = None
    list_units: Callable[[Dataset], tuple[WorkUnit, ...]] | None = None


class Load(NamedTuple):
    """A load into a database: `token` is that of the run that may come back to it, `content` says which rows.

    `content` is the SHA-256 of the manifest of the output.
    """

    token: str
    content: str


def _differ(schema: pa.Schema, all_: pa.Schema) -> bool:
    return not schema.equals(all_)


@dataclass(frozen=True)
class WriteBackend:
    """How part files are written.

    `codecs` maps a compression to (file suffix, codec of the format), `unwritable(schema)` says why rows
    of that schema cannot be written (None: they can), `open(path, codec, options)` starts a part file.
    Files of one output are written anew when they lack columns or types of the others: `differs(schema, all)`
    says whether a file looks another way under the schema of all. Without `keeps_types` a file tells
    the names of columns only, and all its values come back as text. `parts` is the format of its part files,
    when that is another one.
    `load(spec, files, load)` brings the finished part files, in order, into a database; with a `Load` exactly
    once, however often it is called. `check(spec, token)` says, before any work, whether it will be able to;
    `forget(spec, token)` removes what is known of the loads of a run that is over.
    """

    codecs: Mapping[str | None, tuple[str, str]]
    unwritable: Callable[[pa.Schema], str | None]
    open: Callable[[Path, str, Mapping[str, object]], PartWriter]
    keeps_types: bool = True
    differs: Callable[[pa.Schema, pa.Schema], bool] = _differ
    parts: str | None = None
    load: Callable[[OutputSpec, Sequence[Path], Load | None], None] | None = None
    check: Callable[[OutputSpec, str | None], None] | None = None
    forget: Callable[[OutputSpec, str], None] | None = None

    def codec(self, compression: str | None) -> tuple[str, str]:
        """The (file suffix, codec) of a compression; UnknownNameError lists the known ones."""
        if compression not in self.codecs:
            raise UnknownNameError("compression", compression, [name for name in self.codecs if name])
        return self.codecs[compression]

    def open_part(self, path: Path, spec: OutputSpec) -> PartWriter:
        """Start a part file with the compression and the options of `spec`."""
        return self.open(path, self.codec(spec.compression)[1], spec.options)


@dataclass(frozen=True)
class Format:
    """A name that a dataset or an output can give as its backend; `writer` is None if it is only read."""

    name: str
    reader: ReadBackend
    writer: WriteBackend | None = None
