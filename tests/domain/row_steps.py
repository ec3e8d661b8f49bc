"""Run a step over rows in both its forms, which must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from treadle.domain.row_step import RowStep, Stepped, records_of

Rows = list[dict[str, Any]]


def batch_of(rows: Sequence[dict[str, Any]], schema: pa.Schema | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def both(step: RowStep, rows: Sequence[dict[str, Any]], schema: pa.Schema | None = None) -> Stepped:
    """What the step makes of records; checked: of a batch it makes the same."""
    assert step.records is not None
    assert step.batches is not None
    before = [dict(row) for row in rows]
    one = step.records(rows)
    assert list(rows) == before, "a step must not change the rows it is given"
    other = step.batches(batch_of(rows, schema))
    assert isinstance(other.rows, pa.RecordBatch)
    assert list(records_of(other.rows)) == list(records_of(one.rows))
    assert list(other.origins or ()) == list(one.origins or ())
    assert other.rejects == one.rejects
    return one


def rows_of(stepped: Stepped) -> Rows:
    """Its rows, whatever their form."""
    return [dict(row) for row in records_of(stepped.rows)]


def given(step: RowStep, rows: Sequence[dict[str, Any]]) -> Rows:
    """The rows that come out."""
    return rows_of(both(step, rows))


def column(step: RowStep, name: str, values: Sequence[Any]) -> list[Any]:
    """What becomes of the values of one column."""
    return [row[name] for row in given(step, [{name: value} for value in values])]
