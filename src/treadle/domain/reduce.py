"""Sums by key over a stream of batches, in memory bounded by the number of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treadle.errors import ArgumentError

_NULL_IS_NOTHING = pc.ScalarAggregateOptions(skip_nulls=True, min_count=0)
_MOST_WAITING = 100_000


class SumFold:
    """Folds batches into one row per combination of `keys` with the totals of `sums`.

    Integers are summed as int64, exactly, or refused with an ArgumentError when they may not fit; floats
    as float64 in the order of arrival. A null sum adds nothing; null is a key like any other. Partial tables
    are merged whenever more rows wait than there are keys.
    """

    def __init__(self, keys: Sequence[str], sums: Sequence[str]) -> None:
        if not keys or not sums or len({*keys, *sums}) < len(keys) + len(sums):
            raise ArgumentError(
                f"keys and sums must be given and distinct, got {list(keys)} and {list(sums)}"
            )
        self.keys = tuple(keys)
        self.sums = tuple(sums)
        self._parts: list[pa.Table] = []
        self._waiting = 0
        self._schema = pa.schema([])

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take in a batch; columns beyond keys and sums are left aside.

        Raises ArgumentError when a column is missing, cannot be summed, or is of another kind than before.
        """
        part = self._aggregate(self._checked(pa.table(batch)))
        self._schema = _unified(self._schema, part.schema)
        self._parts.append(part)
        self._waiting += part.num_rows
        if self._waiting > max(_MOST_WAITING, self._parts[0].num_rows):
            self._merge()

    def result(self) -> pa.Table:
        """Keys then sums, sorted by keys, nulls last; a table without columns when nothing was added.

        Raises ArgumentError when a sum does not fit.
        """
        self._merge()
        if not self._parts:
            return pa.table({})
        return self._parts[0].sort_by([(key, "ascending") for key in self.keys])

    def _checked(self, table: pa.Table) -> pa.Table:
        for name in (*self.keys, *self.sums):
            if name not in table.column_names:
                raise ArgumentError(f"no column {name!r} to reduce; the rows have {table.column_names}")
        table = table.select([*self.keys, *self.sums])
        kinds = [pa.field(key, _key_type(key, table.schema.field(key).type)) for key in self.keys]
        kinds += [pa.field(name, _sum_type(name, table.schema.field(name).type)) for name in self.sums]
        return table.cast(pa.schema(kinds))

    def _aggregate(self, table: pa.Table) -> pa.Table:
        for name in self.sums:
            _check_room(name, table[name])
        # One thread: the order of the groups and of float additions must not depend on the machine.
        # By numbers, since the names that Arrow makes for the sums could be those of keys.
        keys = [f"k{at}" for at in range(len(self.keys))]
        values = [f"v{at}" for at in range(len(self.sums))]
        grouped = table.rename_columns([*keys, *values]).group_by(keys, use_threads=False)
        sums = grouped.aggregate([(name, "sum", _NULL_IS_NOTHING) for name in values])
        return sums.select([*keys, *(f"{name}_sum" for name in values)]).rename_columns(table.column_names)

    def _merge(self) -> None:
        if len(self._parts) > 1:
            try:
                # Permissive: the keys of a batch without any value have no type yet.
                together = pa.concat_tables(self._parts, promote_options="permissive")
            except pa.ArrowInvalid as error:
                raise ArgumentError(f"integers among fractions: {error}") from error
            self._parts = [self._aggregate(together)]
        self._waiting = 0


def _check_room(name: str, column: pa.ChunkedArray[Any]) -> None:
    """Arrow wraps around silently, so refuse what could."""
    if pa.types.is_integer(column.type):
        total = pc.sum(pc.abs(column.cast(pa.float64(), safe=False))).as_py() or 0.0
        if total >= 2.0**63:
            raise ArgumentError(f"column {name!r} adds up to {total:.3g}, more than 64 bits hold")


def _sum_type(name: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    raise ArgumentError(f"column {name!r} is {kind}, expected a number to sum")


def _key_type(name: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_nested(kind):
        raise ArgumentError(f"column {name!r} is {kind}, expected single values as keys")
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _unified(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    try:
        return pa.unify_schemas([known, found], promote_options="permissive")
    except pa.ArrowException as error:
        raise ArgumentError(f"the rows are of another kind than those before: {error}") from error
