"""The types of the columns of groups: keys, sums, smallest and largest values."""

from __future__ import annotations

import pyarrow as pa

from treadle.errors import ArgumentError


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
