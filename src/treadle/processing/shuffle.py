"""Tables that one phase of a run hands on to the next, so that each bucket of keys can be read alone.

A unit writes its table in spills, each cut by hash into the same number of slots, one record batch a slot. A
bucket is a range of hashes: it reads the slots that overlap it and drops the rows of its neighbours. So the
number of buckets can be chosen when it is known how many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pyarrow as pa

from treadle.domain.key_hash import Hashes, buckets_of
from treadle.processing.unit_run import UnitRun
from treadle.storage import UnitRecord, WorkUnit
from treadle.storage.formats.arrow import count_arrow_batches, read_arrow_batches

SLOT_ROWS = 4096
HASH = "hash"


class SpillWriter:
    """Writes spills of at most `memory_rows` rows to the scratch output `output` of a unit."""

    def __init__(self, run: UnitRun, output: str, memory_rows: int) -> None:
        self._run = run
        self._output = output
        self._memory_rows = memory_rows
        self._spilled = False

    def spill(self, table: pa.Table, hashes: Hashes) -> None:
        """Write a table before the last one: of more than half of `memory_rows` rows."""
        self._spilled = True
        self._write(table, hashes, slots(self._memory_rows, self._memory_rows))

    def finish(self, table: pa.Table, hashes: Hashes) -> None:
        """Write the last table."""
        rows = self._memory_rows if self._spilled else table.num_rows
        self._write(table, hashes, slots(rows, self._memory_rows))

    def _write(self, table: pa.Table, hashes: Hashes, count: int) -> None:
        homes = buckets_of(hashes, count)
        order = np.argsort(homes, kind="stable")
        ends = np.searchsorted(homes[order], np.arange(count + 1))
        kept = table.append_column(HASH, pa.array(hashes)).take(order)
        for start, end in pairwise(ends):
            self._run.write(self._output, kept.slice(start, end - start).combine_chunks())


def slots(rows: int, memory_rows: int) -> int:
    """The slots of each spill of a file that has that many rows in all."""
    rows = memory_rows if rows > memory_rows // 2 else rows
    return max(1, -(-rows // SLOT_ROWS))


@dataclass(frozen=True)
class Spill:
    """A file of spills: `source` is the file that its rows were made from, `unit` the place of its unit."""

    path: str
    rows: int
    sha256: str
    source: str = ""
    unit: int = 0


def spills_of(records: Sequence[UnitRecord], output: str) -> tuple[Spill, ...]:
    """The files of a scratch output, in the order of units; units without rows have none."""
    return tuple(
        Spill(each.path, each.rows, each.sha256, record.unit.source, record.unit.index)
        for record in records
        for each in record.files
        if each.output == output
    )


def read_bucket(spill: Spill, memory_rows: int, bucket: int, buckets: int) -> Iterator[pa.Table]:
    """The rows of one bucket, without their hashes, spill by spill."""
    count = slots(spill.rows, memory_rows)
    spills = count_arrow_batches(spill.path) // count
    first, last = bucket * count // buckets, -(-(bucket + 1) * count // buckets)
    numbers = [each * count + slot for each in range(spills) for slot in range(first, last)]
    for batch in read_arrow_batches(spill.path, numbers):
        mine = buckets_of(batch.column(HASH).to_numpy(), buckets) == bucket
        yield pa.table(batch.filter(pa.array(mine))).drop_columns([HASH])


def bucket_units(spills: Sequence[Spill], buckets: int) -> tuple[WorkUnit, ...]:
    """A unit for each bucket; its identity changes with the content of the spills, and with their units."""
    content = sha256("".join(f"{each.sha256}{each.unit} " for each in spills).encode()).hexdigest()
    size = sum(each.rows for each in spills) // buckets
    return tuple(
        WorkUnit(f"{at:05d}-bucket", at, "", size, identity=f"{content}:{at}/{buckets}")
        for at in range(buckets)
    )


def read_scratch(records: Sequence[UnitRecord], output: str) -> pa.Table:
    """All rows of a scratch output, in the order of units."""
    files = [each for each in spills_of(records, output) if each.rows]
    return pa.concat_tables(map(read_whole, files), promote_options="permissive")


def read_whole(spill: Spill) -> pa.Table:
    """All rows of one file."""
    numbers = range(count_arrow_batches(spill.path))
    return pa.Table.from_batches(list(read_arrow_batches(spill.path, numbers)))
