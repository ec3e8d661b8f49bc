"""The second phase of `dedup`: which rows are the same as an earlier one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from treadle.domain.dedup import first_of_each, from_bytes
from treadle.domain.minhash import Places, estimated_jaccard, group_similar
from treadle.manifest.model import DedupSection
from treadle.processing.dedup_look import MEMORY_ROWS
from treadle.processing.shuffle import Spill, read_bucket, read_whole
from treadle.processing.unit_run import UnitRun

_DROPS_A_BATCH = 65_536


@dataclass(frozen=True)
class GroupDigests:
    """Group: the rows of one bucket whose digest an earlier row has."""

    spills: tuple[Spill, ...]
    buckets: int

    def __call__(self, run: UnitRun) -> None:
        """Write the drops of a bucket."""
        parts = [
            _placed(table, spill)
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
        parts = [_placed(read_whole(each), each) for each in self.spills]
        if not parts:
            return
        rows = pa.concat_tables(parts).drop_null()
        width = self.section.permutations
        signatures = from_bytes(rows["digest"], np.uint32).reshape(-1, width)
        first = group_similar(signatures, self.section.threshold)
        alike = estimated_jaccard(signatures, np.arange(len(first)), first)
        _write_drops(run, rows.append_column("similarity", pa.array(alike)), first)


def _placed(table: pa.Table, spill: Spill) -> pa.Table:
    """The rows with the place of their unit."""
    return table.add_column(1, "unit", pa.array(np.full(table.num_rows, spill.unit, np.int32)))


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
