"""The nouns of storage: datasets, the units of work they are cut into, rows of a unit, and what is bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Record = Mapping[str, Any]
"""A row as Python values by column."""

Rows: TypeAlias = "pa.RecordBatch | pa.Table | Sequence[Record]"
"""What may be written."""

SPLIT_BYTES = 128 * 2**20
"""A file that is larger is read in parts, where its format allows that."""


@dataclass(frozen=True)
class Dataset:
    """Where rows are and in which format, for reading.

    `path` is a file, a folder or a glob on any fsspec path, or the URL of a database. `columns` are those to
    read, in this order (None: all). `types` are the types of some columns (bool, int64, float64, string); a
    row with another value there is bad. `missing`: whether a row without one of `columns` is bad, or null
    there. `options` are those of the format.
    """

    backend: str
    path: str
    columns: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    missing: Literal["reject", "null"] = "reject"
    split_bytes: int | None = SPLIT_BYTES
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class OutputSpec:
    """Where rows go and in which format.

    `path` is a folder, a prefix of an object store, or the URL of a database. `mode` says what becomes of an
    output that is there already. `lanes` is how many files each unit is spread over, written at the same
    time. `on_type_change`: a column that has one type in one unit and another type in the next is refused, or
    becomes text; what widens without loss (nothing to something, whole numbers to fractions) is always
    widened.
    """

    backend: str
    path: str
    compression: str | None = None
    mode: Literal["error", "overwrite", "append"] = "error"
    lanes: int = 1
    on_type_change: Literal["refuse", "text"] = "refuse"
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkUnit:
    """A part of the work that is done, kept and counted as a whole: a file, or a part of a large one.

    `id` is for people: "00003-<file stem>", or "00003-<file stem>@<first byte or row group>"; `index` is its
    place among the units of the dataset. `identity` changes whenever the content may have: it holds the
    source, its size and its version (time or tag), and the part. `part` are the first and the end of the
    bytes (jsonl) or row groups (parquet) of the unit, None for a whole file.
    """

    id: str
    index: int
    source: str
    bytes: int
    identity: str = ""
    part: tuple[int, int] | None = None


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used.

    `line` counts from 1 (the number of the row where the format has no lines); 0 stands for the whole file.
    `offset` is the byte where the row begins in the uncompressed file, None where that means nothing. `kind`
    is a short stable name such as "not-utf8", `reason` a sentence. `raw` are its bytes as they were read, up
    to `RAW_BYTES`.
    """

    source: str
    line: int
    reason: str
    raw: bytes = b""
    offset: int | None = None
    kind: str = "rejected"


RAW_BYTES = 2**20
"""A bad row is kept up to this many bytes; `offset` says where the rest is."""


@dataclass(frozen=True)
class RowBatch:
    """Some rows of one unit, in order, and the bad rows met on the way.

    The rows are both a record batch (`rows`) and Python records (`records`): the format gives the one that it
    reads, the other is made when it is asked for. `lines` has the line of each row, from 1; in a parquet file
    that is the number of the row. There may be no rows when `bad` is not empty. Within a unit a later batch
    may have more columns, and a type where an earlier batch had only nulls; no other change of type happens.
    `text_bytes`: the bytes of the text that all of it was read from, good rows and bad; 0 where there is no
    text.
    """

    lines: Sequence[int]
    source: str
    bad: tuple[BadRow, ...] = ()
    table: pa.RecordBatch | None = None
    given: Sequence[Record] | None = None
    schema: pa.Schema | None = None
    text_bytes: int = 0

    @property
    def size(self) -> int:
        """About how many bytes the rows take: of memory when they are a table, else of the text they were."""
        return self.text_bytes if self.table is None else self.table.nbytes

    @property
    def num_rows(self) -> int:
        """How many good rows there are."""
        return len(self.lines)

    @cached_property
    def rows(self) -> pa.RecordBatch:
        """The rows as a record batch; records become one under `schema`, which then must be given."""
        if self.table is not None:
            return self.table
        import pyarrow as pa  # here: a dataset is described without tables

        fields = [] if self.schema is None else list(self.schema)
        names = [each.name for each in fields]
        kept = [{name: row.get(name) for name in names} for row in self.given or ()]
        # Through a struct array, because a batch made in another way loses its rows when it has no column.
        return pa.RecordBatch.from_struct_array(pa.array(kept, pa.struct(fields)))  # type: ignore[arg-type]

    @cached_property
    def records(self) -> Sequence[Record]:
        """The rows as Python records."""
        return self.given if self.given is not None else self.rows.to_pylist()
