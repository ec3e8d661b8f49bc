"""The rows of a batch that a fold can take, and why it cannot take the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from treadle.domain.columns import is_number, is_text
from treadle.domain.group_types import key_type, ordered_type, sum_type
from treadle.domain.grouping import Grouping
from treadle.domain.result import Reject
from treadle.errors import ArgumentError, MissingColumnError

_TypeOf = Callable[[str, pa.DataType], pa.DataType]
_DECLARED: dict[str, pa.DataType] = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64()}


class Foldable(NamedTuple):
    """The rows that can be folded, declared columns under their types, and a reject for each other row."""

    rows: pa.RecordBatch
    rejects: tuple[Reject, ...]


def foldable(rows: pa.RecordBatch, grouping: Grouping) -> Foldable:
    """Which rows a `GroupFold` of `grouping` takes: no value of them is of a wrong kind.

    A column of another kind is one of nulls, and each row with a value in it is refused; so is a value
    without an exact form under the type that is asked for. Raises MissingColumnError.
    """
    faults: dict[int, str] = {}
    for name, type_of in _asked(grouping):
        if name not in rows.schema.names:
            raise MissingColumnError(name, rows.schema.names)
        at = rows.schema.get_field_index(name)
        fitted = _fitted(name, rows.column(at), type_of, faults)
        if fitted is not None and (name in grouping.types or pa.types.is_null(fitted.type)):
            rows = rows.set_column(at, name, fitted)
    if faults:
        rows = rows.take(pa.array([at for at in range(rows.num_rows) if at not in faults], pa.int64()))
    return Foldable(rows, tuple(Reject(at, faults[at], "wrong-type") for at in sorted(faults)))


def _asked(grouping: Grouping) -> Iterator[tuple[str, _TypeOf]]:
    """Each column in each of its parts, with what tells the type that it is folded under."""
    for name, declared in grouping.types.items():
        yield name, partial(_declared, wanted=_DECLARED[declared])
    for name in grouping.keys:
        yield name, key_type
    for each in grouping.aggregates.values():
        if each.column is not None:
            yield each.column, _TYPES.get(each.function, _any_type)


def _declared(name: str, kind: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """`wanted`. Raises ArgumentError when `kind` is text and that is not, or the other way round."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_null(inner) or (_is_text(inner) if is_text(wanted) else is_number(inner))):
        raise ArgumentError(f"column {name!r} is {kind}, expected {wanted}")
    return wanted


def _any_type(_name: str, kind: pa.DataType) -> pa.DataType:
    return kind


_TYPES: dict[str, _TypeOf] = {"sum": sum_type, "mean": sum_type, "min": ordered_type, "max": ordered_type}


def _fitted(
    name: str, column: pa.Array[Any], type_of: _TypeOf, faults: dict[int, str]
) -> pa.Array[Any] | None:
    """The column under its type; a value without a form there is null, and noted. None: it has the type."""
    try:
        kind = type_of(name, column.type)
    except ArgumentError as error:
        faults |= {at: str(error) for at in range(len(column)) if column[at].is_valid}
        return pa.nulls(len(column))
    if column.type == kind:
        return None
    try:
        return column.cast(kind)
    except pa.ArrowException:
        return pa.array([_value(name, at, column, kind, faults) for at in range(len(column))], kind)


def _value(name: str, at: int, column: pa.Array[Any], kind: pa.DataType, faults: dict[int, str]) -> Any:
    try:
        return column.slice(at, 1).cast(kind)[0].as_py()
    except pa.ArrowException:
        faults[at] = f"column {name}: expected {kind}, found {column.type} {column[at].as_py()!r}"
        return None


def _is_text(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_string_view(kind)
