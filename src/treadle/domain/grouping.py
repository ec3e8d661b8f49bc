"""What is asked of groups of rows: the columns that make a group, and the aggregates of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from treadle.errors import ArgumentError

FUNCTIONS = ("count", "sum", "min", "max", "mean", "list")


@dataclass(frozen=True)
class Aggregate:
    """One column made of the rows of a group.

    `count` is the number of rows, with a column of those where it is not null; `sum`, `min`, `max` and `mean`
    leave nulls aside; `list` has all values in the order of rows, nulls too.
    """

    function: str
    column: str | None = None


@dataclass(frozen=True)
class Grouping:
    """Rows with equal `keys` make a group, of which the `aggregates` are told, by the name of their column.

    Null is a key like any other. Keys are numbers, bools, text, bytes, dates and timestamps.

    Raises ArgumentError: no key or no aggregate, names that are not distinct, an unknown function, a function
    without its column.
    """

    keys: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]

    def __post_init__(self) -> None:
        names = [*self.keys, *self.aggregates]
        if not self.keys or not self.aggregates or len(set(names)) < len(names):
            raise ArgumentError(
                "keys and sums (or aggregates) must be given and distinct, "
                f"got {list(self.keys)} and {list(self.aggregates)}"
            )
        for name, each in self.aggregates.items():
            if each.function not in FUNCTIONS:
                raise ArgumentError(f"{name}: expected one of {', '.join(FUNCTIONS)}, got {each.function!r}")
            if each.column is None and each.function != "count":
                raise ArgumentError(f"{name}: {each.function} needs a column")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        wanted = [each.column for each in self.aggregates.values() if each.column is not None]
        return tuple(dict.fromkeys([*self.keys, *wanted]))


def key_type(name: str, kind: pa.DataType) -> pa.DataType:
    """The type under which a key is kept, so that the same key of another shard is equal to it.

    Raises ArgumentError for what is no key.
    """
    if pa.types.is_dictionary(kind):
        return key_type(name, kind.value_type)
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_nested(kind) or pa.types.is_decimal(kind) or pa.types.is_duration(kind):
        raise ArgumentError(f"column {name!r} is {kind}, expected single values as keys")
    return pa.date32() if pa.types.is_date(kind) else kind


def sum_type(name: str, kind: pa.DataType) -> pa.DataType:
    """int64 or float64. Raises ArgumentError for what cannot be summed."""
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    raise ArgumentError(f"column {name!r} is {kind}, expected a number to sum")


def ordered_type(name: str, kind: pa.DataType) -> pa.DataType:
    """The type under which a smallest or largest value is kept. ArgumentError: it has none."""
    if pa.types.is_dictionary(kind):
        return ordered_type(name, kind.value_type)
    if pa.types.is_nested(kind):
        raise ArgumentError(f"column {name!r} is {kind}, expected single values for a smallest or largest")
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else kind


def unified(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """A schema for both. Raises ArgumentError when there is none."""
    try:
        return pa.unify_schemas([known, found], promote_options="permissive")
    except pa.ArrowException as error:
        raise ArgumentError(f"the rows are of another kind than those before: {error}") from error
