"""The columns of a unit: its first batch decides their types, and every row must fit them.

A column that had only nulls so far stays open until its first value; a new column, or a new field of an
object, may appear at any time. Nothing else changes: a row with a later value that does not fit is
bad, with the column, the type expected and what was found; the value is never silently turned to null.
Integers and fractions that first come in one batch make a column of float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any, cast

import pyarrow as pa

from treadle.storage.json_line import Row, json_kind

_SCALARS: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
_EXACT_IN_FLOAT = 2**53
_NULL: pa.DataType = pa.null()


@dataclass(frozen=True)
class Misfit:
    """A row, by its index among those given, that does not fit the columns."""

    index: int
    reason: str


class Columns:
    """The types of a unit's columns, learnt from its rows. `declared`: these columns only, in this order."""

    def __init__(self, declared: tuple[str, ...] | None = None) -> None:
        self._declared = declared
        self._types: dict[str, pa.DataType] = {}

    def fit(self, rows: Sequence[Row]) -> tuple[pa.RecordBatch, tuple[Misfit, ...]]:
        """The rows that fit, as one batch in order, and those that do not. What a row lacks is null there."""
        self._learn(rows)
        misfits = self._misfits(rows)
        lost = {each.index for each in misfits}
        kept = [{name: row.get(name) for name in self._types} for i, row in enumerate(rows) if i not in lost]
        # Through a struct array, because a batch made in another way loses its rows when it has no column.
        array = pa.array(kept, pa.struct(list(self._types.items())))
        return pa.RecordBatch.from_struct_array(cast("pa.StructArray", array)), misfits

    def _learn(self, rows: Sequence[Row]) -> None:
        seen = dict.fromkeys(name for row in rows for name in row)
        for name in seen if self._declared is None else self._declared:
            kinds = _kinds(row.get(name) for row in rows)
            known = _merge(self._types.get(name, _NULL), _together(kinds))
            # Once more one by one: a value that conflicts must not keep the fields of the others out.
            self._types[name] = reduce(_merge, kinds, known)

    def _misfits(self, rows: Sequence[Row]) -> tuple[Misfit, ...]:
        found: dict[int, str] = {}
        for name, kind in self._types.items():
            for index, reason in _misfits([row.get(name) for row in rows], kind, name):
                found.setdefault(index, reason)
        return tuple(Misfit(index, found[index]) for index in sorted(found))


def _kinds(values: Iterable[Any]) -> tuple[pa.DataType, ...]:
    """The distinct types of values, in order of appearance; null is none."""
    kinds: dict[pa.DataType, None] = {}
    for value in values:
        if isinstance(value, list):
            kinds[pa.list_(_together(_kinds(value)))] = None
        elif isinstance(value, dict):
            kinds[pa.struct([(name, _together(_kinds([inner]))) for name, inner in value.items()])] = None
        elif value is not None:
            kinds[_SCALARS[type(value)]] = None
    return tuple(kinds)


def _together(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """The type of values that came together. The first kind stands; integers and fractions make float64."""
    return reduce(partial(_merge, together=True), kinds, _NULL)


def _merge(known: pa.DataType, found: pa.DataType, *, together: bool = False) -> pa.DataType:
    """`known` widened by `found`; `known` itself when they conflict. `together`: they came in one batch."""
    if known in (_NULL, found):
        return found
    if isinstance(known, pa.ListType) and isinstance(found, pa.ListType):
        return pa.list_(_merge(known.value_type, found.value_type, together=together))
    if isinstance(known, pa.StructType) and isinstance(found, pa.StructType):
        fields = {each.name: each.type for each in known}
        for each in found:
            fields[each.name] = _merge(fields.get(each.name, _NULL), each.type, together=together)
        return pa.struct(list(fields.items()))
    if together and known == _SCALARS[int] and found == _SCALARS[float]:
        return found
    return known


def _misfits(values: Sequence[Any], kind: pa.DataType, name: str) -> list[tuple[int, str]]:
    if set(map(type, values)) <= _plain_kinds(kind):
        return []
    reasons = ((index, _misfit(value, kind, name)) for index, value in enumerate(values))
    return [(index, reason) for index, reason in reasons if reason is not None]


@lru_cache(maxsize=256)
def _plain_kinds(kind: pa.DataType) -> set[type]:
    """The kinds of value that fit a scalar type whatever their value."""
    return {type(None), *(python for python, arrow in _SCALARS.items() if arrow == kind)}


def _misfit(value: Any, kind: pa.DataType, path: str) -> str | None:
    """Why `value` does not fit `kind`, or None."""
    if value is None:
        return None
    if isinstance(kind, pa.ListType) and isinstance(value, list):
        found = _misfits(value, kind.value_type, f"{path}[]")
        return found[0][1] if found else None
    if isinstance(kind, pa.StructType) and isinstance(value, dict):
        inner = (_misfit(value.get(each.name), each.type, f"{path}.{each.name}") for each in kind)
        return next((reason for reason in inner if reason is not None), None)
    if _scalar_fits(value, kind):
        return None
    return f"column {path}: expected {kind}, found {json_kind(value)} {_excerpt(value)}"


def _scalar_fits(value: Any, kind: pa.DataType) -> bool:
    if kind == pa.float64() and type(value) is int:
        return abs(value) <= _EXACT_IN_FLOAT
    return _SCALARS.get(type(value)) == kind


def _excerpt(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
