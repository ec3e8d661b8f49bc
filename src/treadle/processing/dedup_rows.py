"""The rows of a batch as `dedup` compares them, and those that it cannot."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.domain.columns import is_text
from treadle.domain.result import Reject
from treadle.domain.row_step import texts
from treadle.errors import MissingColumnError
from treadle.manifest.model import DedupSection
from treadle.storage import RowBatch


def values_of(batch: RowBatch, columns: Sequence[str]) -> list[list[object]]:
    """The values of each of the columns, which are there, in the order of rows."""
    if batch.given is not None:
        return [[row.get(name) for row in batch.given] for name in columns]
    return [batch.rows[name].to_pylist() for name in columns]


def refused_rows(batch: RowBatch, section: DedupSection) -> tuple[Reject, ...]:
    """The rows with a value that the method cannot compare. Raises MissingColumnError."""
    schema = batch.rows.schema if batch.schema is None else batch.schema
    for column in section.columns:
        if column not in schema.names:
            raise MissingColumnError(column, schema.names)
    if section.method != "minhash":
        return ()
    # By the type of a column first: to look at each value takes long, and mostly all of them are text.
    doubtful = [name for name in section.columns if not is_text(schema.field(name).type)]
    faults = texts(dict(zip(doubtful, values_of(batch, doubtful), strict=True)))
    return tuple(Reject(at, faults[at], "wrong-type") for at in sorted(faults))
