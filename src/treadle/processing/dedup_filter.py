"""The last phase of `dedup`: each unit is read again, and written without the rows that are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from treadle.domain.minhash import Places
from treadle.domain.result import Reject
from treadle.manifest.model import DedupSection
from treadle.processing.dedup_rows import refused_rows
from treadle.processing.shuffle import Spill
from treadle.processing.unit_run import UnitRun
from treadle.storage import RowBatch
from treadle.storage.dataset import Rows
from treadle.storage.formats.arrow import count_arrow_batches, read_arrow_batches


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


@dataclass(frozen=True)
class _Split:
    batch: RowBatch
    kept: Places
    dropped: Places
    drops: pa.Table
    refused: tuple[Reject, ...]


class _Filter:
    def __init__(self, run: UnitRun, work: FilterUnit) -> None:
        self._run = run
        self._work = work
        self._drops = _drops_of_unit(work.drops, run.unit.index)
        self._rows = self._drops["row"].to_numpy() if self._drops.num_columns else np.empty(0, np.int64)
        self._row = 0

    def split(self, batch: RowBatch) -> _Split:
        start, self._row = self._row, self._row + batch.num_rows
        refused = refused_rows(batch, self._work.section)
        first, end = np.searchsorted(self._rows, [start, self._row])
        dropped = self._rows[first:end] - start
        gone = np.concatenate([dropped, np.array([each.index for each in refused], np.int64)])
        kept = np.setdiff1d(np.arange(batch.num_rows), gone, assume_unique=True)
        return _Split(batch, kept, dropped, self._drops.slice(first, end - first), refused)

    def write(self, split: _Split) -> None:
        batch = split.batch
        if len(split.kept):
            self._run.write("rows", _taken(batch, split.kept))
        if len(split.dropped) and "duplicates" in self._run.plan.outputs:
            self._run.write("duplicates", self._duplicates(split))
        self._run.settle(batch, out=len(split.kept), filtered=len(split.dropped), rejects=split.refused)

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
