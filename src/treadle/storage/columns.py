"""The columns of a unit: its first batch decides their types, and every row must fit them.

A column that had only nulls so far stays open until its first value; a new column, or a new field of an
object, may appear at any time. Nothing else changes: a row with a later value that does not fit is
bad, with the column, the type expected and what was found; the value is never silently turned to null.
Integers and fractions that first come in one batch make a column of float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any, Literal, cast

import pyarrow as pa

from treadle.storage.grid import Cells, Grid, Row, grid_of
from treadle.storage.json_line import json_kind

_SCALARS: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
_DECLARED: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
}
_JSON = {*_SCALARS, list, dict}
_EXACT_IN_FLOAT = 2**53
_NULL: pa.DataType = pa.null()


@dataclass(frozen=True)
class Misfit:
    """A row, by its index among those given, that does not fit the columns.

    `learnt`: it is only the first value of a column that says so, and a declared type could say otherwise.
    """

    index: int
    reason: str
    kind: str = "wrong-type"
    learnt: bool = False


@dataclass(frozen=True)
class Checked:
    """The records that fit, by the declared columns when there are such, and the rows that do not."""

    records: Sequence[Row]
    misfits: tuple[Misfit, ...]


class Columns:
    """The types of a unit's columns, learnt from its rows.

    `declared`: these columns only, in this order. `types`: what the values of some columns must be (bool,
    int64, float64, string). `missing`: whether a row without one of `declared` is a misfit, or null there.
    `schema`: the columns known before the first row.
    """

    def __init__(
        self,
        declared: tuple[str, ...] | None = None,
        types: Mapping[str, str] | None = None,
        missing: Literal["reject", "null"] = "null",
        schema: pa.Schema | None = None,
    ) -> None:
        self._declared = declared
        self._missing = missing
        self._types: dict[str, pa.DataType] = {each.name: each.type for each in schema or ()}
        self._fixed = {name: _DECLARED[kind] for name, kind in (types or {}).items()}

    @property
    def schema(self) -> pa.Schema:
        """The columns so far."""
        return pa.schema(list(self._types.items()))

    def check(self, rows: Sequence[Row], grid: Grid | None = None) -> Checked:
        """The rows that fit, in order, and those that do not. `grid`: that of the rows, if it is there."""
        grid = grid or grid_of(rows)
        found = self._absent(rows, grid)
        if found or not self.settled(grid):
            self._learn([row for index, row in enumerate(rows) if index not in found] if found else rows)
            for misfit in self._misfits(grid):
                found.setdefault(misfit.index, misfit)
        kept = [row for index, row in enumerate(rows) if index not in found] if found else rows
        if self._declared is not None and not (grid.even and grid.names == self._declared):
            kept = [{name: row.get(name) for name in self._declared} for row in kept]
        return Checked(kept, tuple(found[index] for index in sorted(found)))

    def settled(self, grid: Grid) -> bool:
        """Whether all values fit, as could be seen at once, and nothing can be learnt from them."""
        names = grid.names if self._declared is None else self._declared
        return all(name in self._types for name in names) and all(
            _settled(grid.cells[name], self._types[name]) for name in names if name in grid.cells
        )

    def fit(self, rows: Sequence[Row]) -> tuple[pa.RecordBatch, tuple[Misfit, ...]]:
        """The rows that fit, as one batch in order, and those that do not. What a row lacks is null there."""
        checked = self.check(rows)
        kept = [{name: row.get(name) for name in self._types} for row in checked.records]
        # Through a struct array, because a batch made in another way loses its rows when it has no column.
        array = pa.array(kept, pa.struct(list(self._types.items())))
        return pa.RecordBatch.from_struct_array(cast("pa.StructArray", array)), checked.misfits

    def _absent(self, rows: Sequence[Row], grid: Grid) -> dict[int, Misfit]:
        if self._declared is None or self._missing == "null":
            return {}
        wanted = set(self._declared)
        if grid.even and wanted <= grid.cells.keys():
            return {}
        lacking = ((index, wanted - row.keys()) for index, row in enumerate(rows))
        return {
            index: Misfit(index, f"column {', '.join(sorted(names))}: missing", "missing-column")
            for index, names in lacking
            if names
        }

    def _learn(self, rows: Sequence[Row]) -> None:
        grid = grid_of(rows)
        for name in grid.names if self._declared is None else self._declared:
            if name in self._fixed:
                self._types[name] = self._fixed[name]
                continue
            kinds = _kinds_in(grid.cells[name]) if name in grid.cells else ()
            # Once more one by one: a value that conflicts must not keep the fields of the others out.
            for kind in (_together(kinds), *kinds):
                self._types[_checked_name(name)] = _merge(self._types.get(name, _NULL), kind)

    def _misfits(self, grid: Grid) -> Iterator[Misfit]:
        for name, kind in self._types.items():
            cells = grid.cells.get(name)
            if cells is not None and not _settled(cells, kind):
                learnt = name not in self._fixed and kind in _DECLARED.values()
                for index, reason in _misfits(cells.values, kind, name):
                    yield Misfit(cells.at[index], reason, learnt=learnt)


def _checked_name(name: object) -> str:
    """Raises ValueError when the name of a column is not text, which only a record made by code can have."""
    if type(name) is not str:
        raise ValueError(f"column {name!r}: the name of a column must be text, found {json_kind(name)}")
    return name


def _settled(cells: Cells, kind: pa.DataType) -> bool:
    """Whether all values fit a type that they cannot widen. May be wrong only in saying no."""
    if cells.kinds <= _plain_kinds(kind):
        return True
    found = cells.kinds - {type(None)}
    if kind == _SCALARS[float] and found <= {float, int}:
        return all(_scalar_fits(value, kind) for value in cells.values if type(value) is int)
    if isinstance(kind, pa.ListType) and found == {list}:
        return _settled(cells.items, kind.value_type)
    if isinstance(kind, pa.StructType) and found == {dict}:
        types = {each.name: each.type for each in kind}
        fields = cells.fields.cells.items()
        return all(name in types and _settled(inner, types[name]) for name, inner in fields)
    return False


def _joint(cells: Cells) -> pa.DataType | None:
    """The type of values that came together, as `_together` has it of their kinds; None when two conflict."""
    found = cells.kinds - {type(None)}
    if len(found) < 2 and found <= _SCALARS.keys():
        return next((_SCALARS[kind] for kind in found), _NULL)
    if found == {int, float}:
        return _SCALARS[float]
    if found == {list}:
        inner = _joint(cells.items)
        return None if inner is None else pa.list_(inner)
    if found == {dict}:
        fields = [(_checked_name(name), _joint(each)) for name, each in cells.fields.cells.items()]
        plain = [(name, kind) for name, kind in fields if kind is not None]
        return pa.struct(plain) if len(plain) == len(fields) else None
    return None


def _kinds_in(cells: Cells) -> tuple[pa.DataType, ...]:
    joint = _joint(cells)
    return _kinds(cells.values) if joint is None else (joint,)


def _kinds(values: Iterable[Any]) -> tuple[pa.DataType, ...]:
    """The distinct types of values, in order of appearance; null is none."""
    kinds: dict[pa.DataType, None] = {}
    for value in values:
        if isinstance(value, list):
            kinds[pa.list_(_together(_kinds(value)))] = None
        elif isinstance(value, dict):
            fields = [(_checked_name(name), _together(_kinds([inner]))) for name, inner in value.items()]
            kinds[pa.struct(fields)] = None
        elif type(value) in _SCALARS:
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
    if type(value) not in _JSON:
        hint = "; .item() gives one that has" if hasattr(value, "item") else ""
        return f"column {path}: {json_kind(value)} has no JSON form: {_excerpt(value)}{hint}"
    return f"column {path}: expected {kind}, found {json_kind(value)} {_excerpt(value)}"


def _scalar_fits(value: Any, kind: pa.DataType) -> bool:
    if kind == pa.float64() and type(value) is int:
        return abs(value) <= _EXACT_IN_FLOAT
    return _SCALARS.get(type(value)) == kind


def _excerpt(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
