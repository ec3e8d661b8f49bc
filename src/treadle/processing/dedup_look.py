"""The first phase of `dedup`: each unit is reduced to digests, or signatures, of its rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from treadle.domain.dedup import DIGEST_BYTES, exact_digests, from_bytes, normalized_digests
from treadle.domain.key_hash import Hashes
from treadle.domain.minhash import signatures_of
from treadle.errors import MissingColumnError
from treadle.manifest.model import DedupSection
from treadle.processing.dedup_rows import refused_rows, values_of
from treadle.processing.shuffle import SpillWriter
from treadle.processing.unit_run import UnitRun
from treadle.storage import RowBatch, UnitRecord

MEMORY_ROWS = 2_000_000


@dataclass(frozen=True)
class DigestUnit:
    """Look: of each row its digest (null when it has nothing to compare), its number and line.

    Not its unit: another run of the same checkpoint may find that in another place.
    """

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


def starts_of(records: Sequence[UnitRecord]) -> tuple[int, ...]:
    """How many rows were looked at before each unit."""
    rows = [sum(each.rows for each in record.files if each.output == "digests") for record in records]
    return tuple(int(each) for each in np.cumsum([0, *rows])[:-1])


class _Look:
    """Digests of batches, which know their place in the unit."""

    def __init__(self, run: UnitRun, section: DedupSection) -> None:
        self._run = run
        self._section = section
        self._strict = run.manifest.errors.on_bad_row == "fail"
        self._lines = "duplicates" in run.plan.outputs
        self._seed = run.manifest.runtime.seed
        self._row = 0

    def table(self, batch: RowBatch) -> pa.Table:
        """digest, row (from 0 in the unit), line (0 unless it is asked for)."""
        start, self._row = self._row, self._row + batch.num_rows
        columns = {
            "digest": self._digests(batch),
            "row": pa.array(np.arange(start, self._row)),
            "line": pa.array(batch.lines if self._lines else np.zeros(batch.num_rows, np.int64), pa.int64()),
        }
        return pa.table(columns)

    def _digests(self, batch: RowBatch) -> pa.Array[Any]:
        """Null for a row that cannot be compared: the phase that counts rejects it."""
        try:
            refused = refused_rows(batch, self._section)
        except MissingColumnError:
            if self._strict:
                raise
            return pa.nulls(batch.num_rows, pa.binary(self._width))
        self._run.see_rejected(batch, refused)
        rows = list(zip(*values_of(batch, self._section.columns), strict=True))
        if self._section.method == "minhash":
            return self._signatures(rows, {each.index for each in refused})
        return exact_digests(rows) if self._section.method == "exact" else normalized_digests(rows)

    def _signatures(self, rows: Sequence[Sequence[object]], refused: Collection[int]) -> pa.Array[Any]:
        joined = (
            None if at in refused else "\n".join(each for each in row if isinstance(each, str))
            for at, row in enumerate(rows)
        )
        return signatures_of(joined, self._section.permutations, self._section.ngram, self._seed)

    @property
    def _width(self) -> int:
        return 4 * self._section.permutations if self._section.method == "minhash" else DIGEST_BYTES


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


def _hashes(table: pa.Table) -> Hashes:
    """The first half of each digest; null is 0."""
    digests: Any = table["digest"]
    return from_bytes(digests.fill_null(bytes(DIGEST_BYTES)), np.uint64)[::2].copy()
