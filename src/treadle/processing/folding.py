"""Groups over many units, in two phases: each unit folds its rows to partials, each bucket merges its own.

The partials of a unit are spilled whenever there are more than `memory_rows`, so memory does not grow with
the keys of a unit; and there are as many buckets as it takes that each has about that many groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from treadle.domain.foldable import foldable
from treadle.domain.group_types import unified
from treadle.domain.grouping import Grouping
from treadle.domain.key_hash import Hashes, key_hashes
from treadle.domain.partials import named_schema, under
from treadle.domain.reduce import GroupFold
from treadle.domain.result import Reject
from treadle.errors import ArgumentError, RunError
from treadle.processing.placing import run_errors_at
from treadle.processing.shuffle import HASH, Spill, SpillWriter, bucket_units, read_bucket, spills_of
from treadle.processing.streams import units_of
from treadle.processing.unit_run import UnitRun
from treadle.processing.units import run_units
from treadle.storage import Dataset, RowBatch, UnitRecord
from treadle.storage.formats.backends import read_backend_for

if TYPE_CHECKING:
    from treadle.processing.job import Job

_CHUNK_ROWS = 65_536
_SAMPLE_ROWS = 65_536
_ROOM = 1.25
"""Buckets are made for a quarter more groups than estimated."""


@dataclass(frozen=True)
class Partials:
    """What the first phase made: the spills of all units, and one schema for them."""

    grouping: Grouping
    memory_rows: int
    spills: tuple[Spill, ...]
    schema: pa.Schema
    path: str

    def bucket(self, at: int, buckets: int) -> GroupFold:
        """The merged groups of one bucket.

        Raises ArgumentError when a sum does not fit, RunError when a file goes with no others.
        """
        fold = GroupFold(self.grouping)
        for spill in self.spills:
            for table in read_bucket(spill, self.memory_rows, at, buckets):
                with run_errors_at(spill.source):
                    table = under(table, self.schema, self.grouping)
                fold.add_partials(table)
        return fold

    def choose_buckets(self) -> int:
        """How many buckets of about `memory_rows` groups there are; one when all groups fit.

        The groups of all units are fewer than their partial rows, by nobody knows how many: so those of one
        part of all hashes are merged, and stand for the others.
        """
        rows = sum(each.rows for each in self.spills)
        if rows <= self.memory_rows:
            return 1
        parts = -(-rows // max(self.memory_rows, _SAMPLE_ROWS))
        groups = self.bucket(0, parts).partials().num_rows * parts
        return 1 if groups <= self.memory_rows else max(2, -(-int(groups * _ROOM) // self.memory_rows))


def fold_units(job: Job, name: str, grouping: Grouping, memory_rows: int) -> Partials:
    """The first phase: the partials of each unit of the input `name`. Every good row counts as out.

    Raises:
        RunError: a column is missing or of another kind than in the units before, a sum does not fit, or too
            many bad rows.
    """
    units = units_of(job, name)
    dataset = _narrowed(job.plan.inputs[name], grouping)
    work = FoldUnit(grouping, memory_rows)
    records = run_units(job, "fold", dataset, units, work, batch_rows=_CHUNK_ROWS)
    schema = _schema_of(records, grouping)
    return Partials(grouping, memory_rows, spills_of(records, "partials"), schema, dataset.path)


def merge_buckets(job: Job, partials: Partials, buckets: int, output: str) -> tuple[UnitRecord, ...]:
    """The second phase: one file a bucket, sorted by keys.

    Raises:
        RunError: a sum does not fit.
    """
    units = bucket_units(partials.spills, buckets)
    work = MergeBucket(partials, buckets, output)
    return run_units(job, "merge", None, units, work, counted=False)


def _narrowed(dataset: Dataset, grouping: Grouping) -> Dataset:
    """The dataset with the columns of the grouping only, under its types: what is not needed is not read."""
    # A database casts by rounding, and its columns have types anyway.
    types = {} if read_backend_for(dataset.backend).list_units else grouping.types
    return replace(dataset, columns=grouping.columns, types={**types, **dataset.types})


@dataclass(frozen=True)
class FoldUnit:
    """The work of the first phase."""

    grouping: Grouping
    memory_rows: int

    def __call__(self, run: UnitRun) -> None:
        """Fold the rows of the unit."""
        fold = GroupFold(self.grouping, min(_CHUNK_ROWS, self.memory_rows))
        writer = SpillWriter(run, "partials", self.memory_rows)

        def write(folded: _Folded) -> None:
            rejects = folded.rejects
            run.settle(folded.batch, out=folded.batch.num_rows - len(rejects), rejects=rejects)
            if folded.full is not None:
                writer.spill(folded.full, _hashes(folded.full))

        run.three_stages(lambda batch: self._add(fold, batch), write)
        with run_errors_at(run.unit.source), run.timed("process"):
            table = fold.take()
        if table.num_rows:
            writer.finish(table, _hashes(table))

    def _add(self, fold: GroupFold, batch: RowBatch) -> _Folded:
        rows, rejects = foldable(batch.rows, self.grouping)
        fold.add(rows)
        if fold.held <= self.memory_rows or fold.partials().num_rows <= self.memory_rows // 2:
            return _Folded(batch, rejects, None)
        return _Folded(batch, rejects, fold.take())


class _Folded(NamedTuple):
    """A batch, what of it was refused, and the partials when they are too many to be kept."""

    batch: RowBatch
    rejects: tuple[Reject, ...]
    full: pa.Table | None


@dataclass(frozen=True)
class MergeBucket:
    """The work of the second phase."""

    partials: Partials
    buckets: int
    output: str

    def __call__(self, run: UnitRun) -> None:
        """Merge one bucket."""
        with run.timed("process"), run_errors_at(self.partials.path):
            table = self.partials.bucket(run.unit.index, self.buckets).result()
        if table.num_columns:
            run.write(self.output, table)


def _hashes(table: pa.Table) -> Hashes:
    keys = [name for name in table.column_names if name.startswith("k")]
    return key_hashes([table[name] for name in keys])


def _schema_of(records: Sequence[UnitRecord], grouping: Grouping) -> pa.Schema:
    """The schema of the partials of all units. Raises RunError with the first that goes with no others."""
    known = pa.schema([])
    names: list[str] = []
    for record in records:
        for file in record.files:
            found = pa.schema([each for each in file.schema if each.name != HASH])
            try:
                known = unified(known, named_schema(found, grouping))
            except ArgumentError as error:
                raise RunError(f"{record.unit.source}: {error}") from error
            names = found.names
    return pa.schema([pa.field(name, each.type) for name, each in zip(names, known, strict=True)])
