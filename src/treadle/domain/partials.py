"""Partial results of groups: the keys k0, k1, ... and of each aggregate v0, v1, ... (and v0n for a mean).

Merging is associative: partials of partials are partials.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treadle.domain.grouping import Grouping
from treadle.errors import ArgumentError

_NULL_IS_NOTHING = pc.ScalarAggregateOptions(skip_nulls=True, min_count=0)
_KEEP_NULLS = pc.ScalarAggregateOptions(skip_nulls=True, min_count=1)
_SAFE = 2.0**62
_LOW = 0xFFFFFFFF
_ROW = "row"


def named_schema(schema: pa.Schema, grouping: Grouping) -> pa.Schema:
    """The schema of partials under the names that the user gave, for messages."""
    names = list(grouping.keys)
    for name, each in grouping.aggregates.items():
        names += [name, f"{name} (count)"] if each.function == "mean" else [name]
    return pa.schema([pa.field(name, each.type) for name, each in zip(names, schema, strict=True)])


def under(table: pa.Table, schema: pa.Schema, grouping: Grouping) -> pa.Table:
    """Partials under a schema as wide. Raises ArgumentError naming a column that has no exact form there."""
    for at, name in enumerate(named_schema(schema, grouping).names):
        try:
            table = table.set_column(at, schema.field(at), table.column(at).cast(schema.field(at).type))
        except pa.ArrowException as error:
            raise _mixed(name, error) from error
    return table


def together(parts: list[pa.Table], grouping: Grouping) -> pa.Table:
    """All parts as one table. Raises ArgumentError naming a column whose types do not go together."""
    if len(parts) == 1:
        return parts[0]
    try:
        # Permissive: the keys of a batch without any value have no type yet.
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException:
        for at, name in enumerate(named_schema(parts[0].schema, grouping).names):
            try:
                pa.concat_tables([each.select([at]) for each in parts], promote_options="permissive")
            except pa.ArrowException as error:
                raise _mixed(name, error) from error
        raise


def _mixed(name: str, error: pa.ArrowException) -> ArgumentError:
    return ArgumentError(
        f"column {name!r} has whole numbers in some rows and fractions in others, and one has no exact form "
        f"as a fraction: {error}; declare it in inputs.NAME.types, as int64 or as float64"
    )


def merge_partials(table: pa.Table, grouping: Grouping) -> pa.Table:
    """One row a group, in no order that matters; the same columns.

    Raises ArgumentError when a sum of whole numbers does not fit in 64 bits.
    """
    keys = [f"k{at}" for at in range(len(grouping.keys))]
    plans, lists = _plans(grouping)
    if lists:
        table = table.append_column(_ROW, pa.array(np.arange(table.num_rows)))
    # One thread: the order of float additions must not depend on the machine.
    grouped = table.combine_chunks().group_by(keys, use_threads=False)  # small chunks cost Arrow much
    found = grouped.aggregate([*plans])
    merged = {key: found[key] for key in keys}
    for name, function, _ in plans:
        merged[name] = found[f"{name}_{function}"]
        if function == "sum":
            _check_room(table, keys, name, grouping)
    if lists:
        merged |= _merged_lists(table, found[f"{_ROW}_list"].combine_chunks(), lists)
    return pa.table({name: merged[name] for name in table.column_names if name != _ROW})


_Plan = tuple[str, Any, pc.ScalarAggregateOptions | None]


def _plans(grouping: Grouping) -> tuple[list[_Plan], list[str]]:
    """What Arrow is asked for, and the columns that hold lists."""
    plans: list[_Plan] = []
    lists: list[str] = []
    for at, each in enumerate(grouping.aggregates.values()):
        match each.function:
            case "list":
                lists.append(f"v{at}")
            case "min" | "max":
                plans.append((f"v{at}", each.function, _KEEP_NULLS))
            case "mean":
                plans += [(f"v{at}", "sum", _NULL_IS_NOTHING), (f"v{at}n", "sum", _NULL_IS_NOTHING)]
            case _:
                plans.append((f"v{at}", "sum", _NULL_IS_NOTHING))
    return plans + ([(_ROW, "list", None)] if lists else []), lists


def _merged_lists(table: pa.Table, members: Any, lists: list[str]) -> dict[str, Any]:
    """The lists of each group one after the other, in the order of its rows, which `members` are."""
    rows = members.flatten()
    ends = np.cumsum(members.value_lengths().to_numpy())
    merged: dict[str, Any] = {}
    for name in lists:
        column: Any = table[name].take(rows).combine_chunks()
        sizes = np.concatenate([[0], np.cumsum(column.value_lengths().to_numpy())])
        offsets: Any = pa.array(sizes[np.concatenate([[0], ends])], pa.int32())
        merged[name] = pa.ListArray.from_arrays(offsets, column.flatten())
    return merged


def _check_room(table: pa.Table, keys: list[str], name: str, grouping: Grouping) -> None:
    """Arrow wraps around silently, so refuse what does not fit."""
    column = table[name]
    if not pa.types.is_integer(column.type):
        return
    total = pc.sum(pc.abs(column.cast(pa.float64(), safe=False))).as_py() or 0.0
    if total >= _SAFE:
        _check_groups(table, keys, name, grouping)


def _check_groups(table: pa.Table, keys: list[str], name: str, grouping: Grouping) -> None:
    """Exactly, group by group: the upper and the lower half of the numbers are summed apart."""
    values: Any = table[name].fill_null(pa.scalar(0))
    halves = table.select(keys)
    halves = halves.append_column("high", pc.shift_right(values, 32))
    halves = halves.append_column("low", pc.bit_wise_and(values, _LOW))
    sums = halves.group_by(keys, use_threads=False).aggregate([("high", "sum"), ("low", "sum")])
    high: NDArray[np.int64] = sums["high_sum"].to_numpy() + (sums["low_sum"].to_numpy() >> 32)
    if len(high) and (high.max() >= 2**31 or high.min() < -(2**31)):
        worst = float(high[np.argmax(np.abs(high))]) * 2.0**32
        column = list(grouping.aggregates.values())[int(name[1:].rstrip("n"))].column
        raise ArgumentError(f"column {column!r} adds up to {worst:.3g}, more than 64 bits hold")
