"""The work of `dedup`, phase by phase: digests of rows, which of them are dropped, the rows without those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treadle.domain.dedup import DIGEST_BYTES, exact_digests, first_of_each, from_bytes, normalized_digests
from treadle.domain.key_hash import Hashes
from treadle.domain.minhash import estimated_jaccard, group_similar, signatures_of
from treadle.errors import MissingColumnError
from treadle.manifest.model import DedupSection
from treadle.processing.shuffle import Spill, SpillWriter, read_bucket, read_whole
from treadle.processing.unit_run import UnitRun
from treadle.storage import RowBatch, UnitRecord
from treadle.storage.dataset import Rows
from treadle.storage.formats.arrow import count_arrow_batches, read_arrow_batches

Places = NDArray[np.int64]

MEMORY_ROWS = 2_000_000
_DROPS_A_BATCH = 65_536


@dataclass(frozen=True)
class DigestUnit:
    """Look: of each row its digest (null when it has nothing to compare), its unit, number and line."""

    section: DedupSection

    def __call__(self, run: UnitRun) -> None:
        """Write the digests of a unit, exact ones by their hash, signatures in the order of rows."""
        look = _Look(run, self.section)
        if self.section.method == "minhash":
            run.three_stages(look.table, lambda table: run.write("digests", table))
            return
        writer, waiting = SpillWriter(run, "digests", MEMORY_ROWS), _Waiting()

        def write(table: pa.Table) -> None:
            if (full := waiting.add(table)) is not None:
                writer.spill(full, _hashes(full))

        run.three_stages(look.table, write)
        if (rest := waiting.take()) is not None:
            writer.finish(rest, _hashes(rest))


@dataclass(frozen=True)
class GroupDigests:
    """Group: the rows of one bucket whose digest an earlier row has."""

    spills: tuple[Spill, ...]
    buckets: int

    def __call__(self, run: UnitRun) -> None:
        """Write the drops of a bucket."""
        parts = [
            table
            for spill in self.spills
            for table in read_bucket(spill, MEMORY_ROWS, run.unit.index, self.buckets)
        ]
        if not parts:
            return
        rows = pa.concat_tables(parts).drop_null()
        rows = rows.sort_by([("unit", "ascending"), ("row", "ascending")])
        _write_drops(run, rows, first_of_each(rows["digest"].combine_chunks()))


@dataclass(frozen=True)
class GroupSignatures:
    """Group: the rows that are similar to an earlier one, or to one that is."""

    spills: tuple[Spill, ...]
    section: DedupSection

    def __call__(self, run: UnitRun) -> None:
        """Write the drops."""
        parts = [read_whole(each) for each in self.spills]
        if not parts:
            return
        rows = pa.concat_tables(parts).drop_null()
        width = self.section.permutations
        signatures = from_bytes(rows["digest"], np.uint32).reshape(-1, width)
        first = group_similar(signatures, self.section.threshold)
        alike = estimated_jaccard(signatures, np.arange(len(first)), first)
        _write_drops(run, rows.append_column("similarity", pa.array(alike)), first)


@dataclass(frozen=True)
class DropBatch:
    """A record batch of drops, and the first and the last unit that it is about."""

    path: str
    number: int
    first: int
    last: int


@dataclass(frozen=True)
class FilterUnit:
    """Main: the rows of a unit without those that are dropped.

    `starts` are how many rows there are before each unit, `sources` the file of each, by its index.
    """

    section: DedupSection
    drops: tuple[DropBatch, ...]
    starts: tuple[int, ...]
    sources: tuple[str, ...]

    def __call__(self, run: UnitRun) -> None:
        """Write the rows that are kept, and what became of the others."""
        unit_filter = _Filter(run, self)
        run.three_stages(unit_filter.split, unit_filter.write)


def drops_of(spills: Iterable[Spill]) -> tuple[DropBatch, ...]:
    """Where the drops of which unit are."""
    found = []
    for spill in spills:
        for number in range(count_arrow_batches(spill.path)):
            (batch,) = read_arrow_batches(spill.path, [number])
            if batch.num_rows:
                units = batch.column("unit")
                found.append(DropBatch(spill.path, number, units[0].as_py(), units[-1].as_py()))
    return tuple(found)


def starts_of(records: Sequence[UnitRecord]) -> tuple[int, ...]:
    """How many rows were looked at before each unit."""
    rows = [sum(each.rows for each in record.files if each.output == "digests") for record in records]
    return tuple(int(each) for each in np.cumsum([0, *rows])[:-1])


def content_of(*spills: Spill) -> str:
    """Text that changes with the content of the files."""
    return sha256("".join(each.sha256 for each in spills).encode()).hexdigest()


class _Look:
    """Digests of batches, which know their place in the unit."""

    def __init__(self, run: UnitRun, section: DedupSection) -> None:
        self._unit = run.unit.index
        self._section = section
        self._strict = run.manifest.errors.on_bad_row == "fail"
        self._lines = "duplicates" in run.plan.outputs
        self._seed = run.manifest.runtime.seed
        self._row = 0

    def table(self, batch: RowBatch) -> pa.Table:
        """digest, unit, row (from 0 in the unit), line (0 unless it is asked for)."""
        start, self._row = self._row, self._row + batch.num_rows
        columns = {
            "digest": self._digests(batch),
            "unit": pa.array(np.full(batch.num_rows, self._unit, np.int32)),
            "row": pa.array(np.arange(start, self._row)),
            "line": pa.array(batch.lines if self._lines else np.zeros(batch.num_rows, np.int64), pa.int64()),
        }
        return pa.table(columns)

    def _digests(self, batch: RowBatch) -> pa.Array[Any]:
        try:
            rows = _values(batch, self._section.columns)
        except MissingColumnError:
            if self._strict:
                raise
            width = 4 * self._section.permutations if self._section.method == "minhash" else DIGEST_BYTES
            return pa.nulls(batch.num_rows, pa.binary(width))  # the phase that counts rejects them
        if self._section.method == "minhash":
            return signatures_of(rows, self._section.permutations, self._section.ngram, self._seed)
        return exact_digests(rows) if self._section.method == "exact" else normalized_digests(rows)


class _Waiting:
    """Tables that wait until there are enough of them."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._rows = 0

    def add(self, table: pa.Table) -> pa.Table | None:
        """All that waited, when that is enough."""
        self._tables.append(table)
        self._rows += table.num_rows
        return self.take() if self._rows > MEMORY_ROWS // 2 else None

    def take(self) -> pa.Table | None:
        """All that waited."""
        tables, self._tables, self._rows = self._tables, [], 0
        return pa.concat_tables(tables).combine_chunks() if tables else None


@dataclass(frozen=True)
class _Split:
    batch: RowBatch
    kept: Places
    dropped: Places
    drops: pa.Table


class _Filter:
    def __init__(self, run: UnitRun, work: FilterUnit) -> None:
        self._run = run
        self._work = work
        self._drops = _drops_of_unit(work.drops, run.unit.index)
        self._rows = self._drops["row"].to_numpy() if self._drops.num_columns else np.empty(0, np.int64)
        self._row = 0

    def split(self, batch: RowBatch) -> _Split:
        start, self._row = self._row, self._row + batch.num_rows
        _check_columns(batch, self._work.section.columns)
        first, end = np.searchsorted(self._rows, [start, self._row])
        dropped = self._rows[first:end] - start
        kept = np.setdiff1d(np.arange(batch.num_rows), dropped, assume_unique=True)
        return _Split(batch, kept, dropped, self._drops.slice(first, end - first))

    def write(self, split: _Split) -> None:
        batch = split.batch
        if len(split.kept):
            self._run.write("rows", _taken(batch, split.kept))
        if len(split.dropped) and "duplicates" in self._run.plan.outputs:
            self._run.write("duplicates", self._duplicates(split))
        self._run.settle(batch, out=len(split.kept), filtered=len(split.dropped))

    def _duplicates(self, split: _Split) -> pa.Table:
        drops, lines = split.drops, split.batch.lines
        of_units = drops["of_unit"].to_numpy()
        groups = np.asarray(self._work.starts, np.int64)[of_units] + drops["of_row"].to_numpy()
        columns = {
            "source": [split.batch.source] * len(split.dropped),
            "line": [lines[row] for row in split.dropped.tolist()],
            "of_source": [self._work.sources[unit] for unit in of_units.tolist()],
            "of_line": drops["of_line"],
            "group": groups,
        }
        if "similarity" in drops.column_names:
            columns["similarity"] = drops["similarity"]
        return pa.table(columns)


def _taken(batch: RowBatch, kept: Places) -> Rows:
    if len(kept) == batch.num_rows:
        return batch.rows if batch.given is None else batch.given
    if batch.given is not None:
        return [batch.given[row] for row in kept.tolist()]
    return batch.rows.take(kept)


def _drops_of_unit(drops: Sequence[DropBatch], unit: int) -> pa.Table:
    """What is dropped of a unit, in the order of rows."""
    parts = []
    for each in drops:
        if each.first <= unit <= each.last:
            (batch,) = read_arrow_batches(each.path, [each.number])
            mine = batch.column("unit").to_numpy() == unit
            parts.append(pa.table(batch.filter(pa.array(mine))))
    return pa.concat_tables(parts).sort_by("row").combine_chunks() if parts else pa.table({})


def _write_drops(run: UnitRun, rows: pa.Table, first: Places) -> None:
    """`rows` are in order; those whose `first` is another row are dropped."""
    dropped = np.flatnonzero(first != np.arange(len(first)))
    of = (
        rows.select(["unit", "row", "line"])
        .take(first[dropped])
        .rename_columns(["of_unit", "of_row", "of_line"])
    )
    table = rows.drop_columns(["digest", "line"]).take(dropped)
    for name in of.column_names:
        table = table.append_column(name, of[name])
    for start in range(0, table.num_rows, _DROPS_A_BATCH):
        run.write("drops", table.slice(start, _DROPS_A_BATCH))


def _hashes(table: pa.Table) -> Hashes:
    """The first half of each digest; null is 0."""
    digests: Any = table["digest"]
    return from_bytes(digests.fill_null(bytes(DIGEST_BYTES)), np.uint64)[::2].copy()


def _check_columns(batch: RowBatch, columns: Sequence[str]) -> None:
    known = batch.schema.names if batch.schema is not None else batch.rows.schema.names
    for column in columns:
        if column not in known:
            raise MissingColumnError(column, known)


def _values(batch: RowBatch, columns: Sequence[str]) -> list[list[object]]:
    """The values of the columns, row by row."""
    _check_columns(batch, columns)
    if batch.given is not None:
        return [[row.get(name) for name in columns] for row in batch.given]
    lists = [batch.rows[name].to_pylist() for name in columns]
    return [list(row) for row in zip(*lists, strict=True)]
