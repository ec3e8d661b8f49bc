"""Records as lines of JSON: the same bytes for the same rows, whether they come as records or as a table.

Every line has all columns of the schema, in its order, and objects in the cells all their fields; what a
record lacks is null, and an integer in a column of fractions is written as a fraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa

from treadle.storage.grid import Cells, Grid, Row

_PIECE = 64 * 2**10
_INT64 = range(-(2**63), 2**63)


def dump_rows(rows: Sequence[Row], grid: Grid, schema: pa.Schema) -> Iterator[bytes]:
    """The lines of rows that fit a schema, some at a time; `grid` is that of the rows.

    Raises ValueError naming the column at what JSON, or a reader of it, does not have: NaN and infinities,
    integers over 64 bits, lone surrogates.
    """
    for name, cells in grid.cells.items():
        _check_numbers(name, cells)
    types = {each.name: each.type for each in schema}
    if not (grid.even and grid.names == tuple(types)) or any(
        not _spelt(cells, types[name]) for name, cells in grid.cells.items()
    ):
        rows = [{name: _spell(row.get(name), kind) for name, kind in types.items()} for row in rows]
    for first in range(0, len(rows), step := _rows_at_once(rows)):
        yield _dumped(rows[first : first + step])


def _rows_at_once(rows: Sequence[Row]) -> int:
    # Small pieces stay in the cache, and their memory is used again instead of being asked for anew.
    return max(1, _PIECE // (1 + len(_dumped(rows[:1]))))


def _dumped(rows: Sequence[Row]) -> bytes:
    try:
        return b"\n".join([*map(orjson.dumps, rows), b""])
    except TypeError as error:
        raise ValueError(_reason(rows)) from error


def _check_numbers(name: str, cells: Cells) -> None:
    # A sum is finite only when all its parts are; one that is not may have grown too large.
    if float in cells.kinds and not math.isfinite(sum(_only(float, cells))):
        _check_each(name, _only(float, cells), math.isfinite, "is not JSON")
    if int in cells.kinds:
        _check_each(name, _only(int, cells), _INT64.__contains__, "does not fit 64 bits")
    if list in cells.kinds:
        _check_numbers(name, cells.items)
    if dict in cells.kinds:
        for inner in cells.fields.cells.values():
            _check_numbers(name, inner)


def _only(kind: type, cells: Cells) -> Sequence[Any]:
    if cells.kinds == {kind}:
        return cells.values
    return [value for value in cells.values if type(value) is kind]


def _check_each(name: str, values: Sequence[Any], fits: Callable[[Any], bool], problem: str) -> None:
    wrong = next((value for value in values if not fits(value)), None)
    if wrong is not None:
        raise ValueError(f"column {name}: {wrong} {problem}")


def _spelt(cells: Cells, kind: pa.DataType) -> bool:
    """Whether the values are as `_spell` makes them."""
    if isinstance(kind, pa.StructType):
        fields = cells.fields
        names = tuple(each.name for each in kind)
        return dict not in cells.kinds or (
            (fields.even and fields.names == names)
            and all(_spelt(fields.cells[each.name], each.type) for each in kind)
        )
    if isinstance(kind, pa.ListType):
        return list not in cells.kinds or _spelt(cells.items, kind.value_type)
    return kind != pa.float64() or int not in cells.kinds


def _spell(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, pa.StructType):
        return {each.name: _spell(value.get(each.name), each.type) for each in kind}
    if isinstance(kind, pa.ListType):
        return [_spell(each, kind.value_type) for each in value]
    return float(value) if kind == pa.float64() else value


def _reason(rows: Sequence[Row]) -> str:
    """Why the first row that has no JSON form has none, naming the column."""
    for row in rows:
        for name, value in row.items():
            try:
                orjson.dumps({name: value})
            except TypeError as error:
                return f"column {name}: {error}"
    raise AssertionError("no row is refused alone")
