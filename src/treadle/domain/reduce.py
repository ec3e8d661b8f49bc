"""Aggregates by key over a stream of batches, in memory bounded by the number of keys.

Every row is a partial result of itself, and partial results of one group merge into one: so rows,
batches, units and buckets are all folded by the same merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treadle.domain.group_types import key_type, ordered_type, sum_type, unified
from treadle.domain.grouping import Aggregate, Grouping
from treadle.domain.partials import merge_partials, named_schema, together
from treadle.errors import ArgumentError, MissingColumnError

_MOST_WAITING = 250_000
_CHUNK_ROWS = 65_536


class GroupFold:
    """Folds rows into one row for each group of `grouping`.

    Integers are summed as int64, exactly, or refused with an ArgumentError when they do not fit. Fractions
    are added in the order of rows, first within each `chunk_rows` rows, then chunk by chunk, so the result
    does not depend on how the rows were cut into batches. Partial tables are merged whenever more rows wait
    than there are groups; a list keeps all its values.
    """

    def __init__(self, grouping: Grouping, chunk_rows: int = _CHUNK_ROWS) -> None:
        self.grouping = grouping
        self._chunk_rows = chunk_rows
        self._fresh: list[pa.Table] = []
        self._fresh_rows = 0
        self._parts: list[pa.Table] = []
        self._waiting = 0
        self._schema = self._last = pa.schema([])

    @property
    def held(self) -> int:
        """How many partial rows are held; there may be several of a group."""
        return self._waiting + self._fresh_rows

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take in a batch; columns beyond those of the grouping are left aside.

        Raises ArgumentError when a column is missing, cannot be a key or aggregated, or is of another kind
        than before.
        """
        part = self._prepared(pa.table(batch))
        if not part.schema.equals(self._last):
            # Types were told apart by name, so that a message names the column of the user.
            self._schema = unified(self._schema, named_schema(part.schema, self.grouping))
            self._last = part.schema
        self._fresh.append(part)
        self._fresh_rows += part.num_rows
        if self._fresh_rows >= self._chunk_rows:
            self._fold_fresh(whole=False)

    def add_partials(self, table: pa.Table) -> None:
        """Take in what `partials` gave. Raises ArgumentError when it is of another kind than before."""
        self._fold_fresh(whole=True)
        self._schema = unified(self._schema, named_schema(table.schema, self.grouping))
        self._wait(table)

    def partials(self) -> pa.Table:
        """One row a group, as `add_partials` takes it: keys k0, k1, ... then the columns of the aggregates.

        A table without columns when nothing was added. Raises ArgumentError when a sum does not fit.
        """
        self._fold_fresh(whole=True)
        self._merge()
        return self._parts[0] if self._parts else pa.table({})

    def take(self) -> pa.Table:
        """The partials; the fold is empty afterwards."""
        table = self.partials()
        self._parts, self._waiting = [], 0
        return table

    def result(self) -> pa.Table:
        """Keys then aggregates, sorted by keys, nulls last; a table without columns when nothing was added.

        Raises ArgumentError when a sum does not fit.
        """
        partials = self.partials()
        if not partials.num_columns:
            return partials
        columns = [partials[f"k{at}"] for at in range(len(self.grouping.keys))]
        for at, each in enumerate(self.grouping.aggregates.values()):
            columns.append(_finished(partials, at, each))
        names = [*self.grouping.keys, *self.grouping.aggregates]
        return pa.table(columns, names=names).sort_by([(key, "ascending") for key in self.grouping.keys])

    def _prepared(self, table: pa.Table) -> pa.Table:
        """The rows as partials."""
        for name in self.grouping.columns:
            if name not in table.column_names:
                raise MissingColumnError(name, table.column_names)
        columns = {f"k{at}": _keys(name, table[name]) for at, name in enumerate(self.grouping.keys)}
        for at, each in enumerate(self.grouping.aggregates.values()):
            columns |= _row_partials(at, each, table)
        return pa.table(columns)

    def _fold_fresh(self, *, whole: bool) -> None:
        """Aggregate the rows that came, in chunks of exactly `chunk_rows`; the rest waits unless `whole`."""
        if not self._fresh:
            return
        table, start = together(self._fresh, self.grouping), 0
        while table.num_rows - start >= self._chunk_rows or (whole and start < table.num_rows):
            chunk = table.slice(start, self._chunk_rows)
            self._wait(merge_partials(chunk, self.grouping))
            start += chunk.num_rows
        if not start and whole:  # the types of no rows are types, too
            self._wait(merge_partials(table, self.grouping))
        rest = table.slice(start)
        self._fresh, self._fresh_rows = ([rest], rest.num_rows) if rest.num_rows else ([], 0)

    def _wait(self, part: pa.Table) -> None:
        self._parts.append(part)
        self._waiting += part.num_rows
        if self._waiting > max(_MOST_WAITING, 2 * self._parts[0].num_rows):
            self._merge()

    def _merge(self) -> None:
        if len(self._parts) > 1:
            self._parts = [merge_partials(together(self._parts, self.grouping), self.grouping)]
        self._waiting = sum(each.num_rows for each in self._parts)


class SumFold(GroupFold):
    """The totals of the columns `sums` over groups of equal `keys`; a null adds nothing."""

    def __init__(self, keys: Sequence[str], sums: Sequence[str]) -> None:
        if len(set(sums)) < len(sums):
            raise ArgumentError(f"sums must be distinct, got {list(sums)}")
        super().__init__(Grouping(tuple(keys), {name: Aggregate("sum", name) for name in sums}))


def _keys(name: str, column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    kind = key_type(name, column.type)
    keys = column if column.type == kind else column.cast(kind)
    return pc.add(keys, 0.0) if pa.types.is_floating(kind) else keys  # -0.0 and 0.0 are one key


def _row_partials(at: int, aggregate: Aggregate, table: pa.Table) -> dict[str, Any]:
    name = f"v{at}"
    if aggregate.column is None:
        return {name: pa.array(np.ones(table.num_rows, np.int64))}
    column = table[aggregate.column]
    match aggregate.function:
        case "count":
            return {name: column.is_valid().cast(pa.int64())}
        case "sum":
            return {name: column.cast(sum_type(aggregate.column, column.type))}
        case "mean":
            values = column.cast(sum_type(aggregate.column, column.type))
            return {name: values, f"{name}n": column.is_valid().cast(pa.int64())}
        case "list":
            return {name: _single_lists(column)}
        case _:
            return {name: column.cast(ordered_type(aggregate.column, column.type))}


def _single_lists(column: pa.ChunkedArray[Any]) -> Any:
    values: Any = column.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    offsets: Any = pa.array(np.arange(len(values) + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, values)


def _finished(partials: pa.Table, at: int, aggregate: Aggregate) -> Any:
    column = partials[f"v{at}"]
    if aggregate.function != "mean":
        return column
    counts = partials[f"v{at}n"]
    none = pc.equal(counts, pa.scalar(0))
    some = pc.if_else(none, pa.scalar(None, pa.int64()), counts)
    return pc.divide(column.cast(pa.float64(), safe=False), some.cast(pa.float64(), safe=False))
