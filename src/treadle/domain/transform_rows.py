"""What the transforms of `partition` have in common: the rows they give out, and the account of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.domain.result import Counters, Reject
from treadle.errors import MissingColumnError

if TYPE_CHECKING:
    import pyarrow as pa


def kept_rows(
    batch: pa.RecordBatch, keep: Sequence[str], chosen: Sequence[int], name: str, values: pa.Array[Any]
) -> pa.RecordBatch:
    """The columns `keep` of the chosen rows, and beside them the column `name`."""
    import pyarrow as pa  # here: see `transforms`

    kept = batch.select(list(keep)).take(pa.array(chosen, pa.int64()))
    return pa.RecordBatch.from_arrays([*kept.columns, values], names=[*keep, name])


def row_counters(batch: pa.RecordBatch, chosen: Sequence[int], rejects: Sequence[Reject]) -> Counters:
    """Of a batch: the chosen rows are out, the rejects rejected, the others filtered."""
    out, rejected = len(chosen), len(rejects)
    return Counters(batch.num_rows, out, batch.num_rows - out - rejected, rejected)


def check_columns(rows: pa.RecordBatch | pa.Table, names: Iterable[str]) -> None:
    """Raises MissingColumnError for the first name that no column has."""
    for name in names:
        if name not in rows.schema.names:
            raise MissingColumnError(name, rows.schema.names)
