"""Rows that functions made, fitted to the columns of their unit.

Values of JSON are learnt by `Columns`. A column with other values, such as times or bytes, gets the type that
Arrow gives to its first value; such rows become a record batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from treadle.domain.result import Reject
from treadle.domain.row_step import Record, RowsOfStep
from treadle.storage.columns import Columns
from treadle.storage.grid import Cells, Grid, grid_of

_OF_JSON = {str, int, float, bool}
_PLAIN = {*_OF_JSON, type(None)}
_INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Fitted:
    """The rows that fit, which of those given they are, and the rows that do not fit."""

    rows: RowsOfStep
    positions: Sequence[int]
    rejects: Sequence[Reject]


@dataclass
class Fitting:
    """The columns of one unit, at one place of a chain. `finite`: NaN and infinities do not fit."""

    finite: bool = False
    _columns: Columns = field(default_factory=Columns)
    _order: dict[str, None] = field(default_factory=dict)
    _others: dict[str, pa.DataType] = field(default_factory=dict)

    def fit(self, records: Sequence[Record], *, as_batch: bool) -> Fitted:
        """The records that fit, as records or as a batch; with a column of other values always as a batch."""
        grid = grid_of(records)
        if not self._others and _is_plain(grid, finite=self.finite):  # as it is mostly
            return self._fitted(records, {}, as_batch=as_batch, grid=grid)
        faults: dict[int, Reject] = {}
        return self._fitted(self._cleaned(records, faults), faults, as_batch=as_batch)

    def _fitted(
        self, rows: Sequence[Record], faults: dict[int, Reject], *, as_batch: bool, grid: Grid | None = None
    ) -> Fitted:
        """The rows but for the `faults` and those that do not fit; `grid`: that of the rows, if known."""
        positions: Sequence[int] = (
            [at for at in range(len(rows)) if at not in faults] if faults else range(len(rows))
        )
        kept = [rows[at] for at in positions] if faults else rows
        checked = self._columns.check(self._without_others(kept), grid)
        for each in checked.misfits:
            at = positions[each.index]
            faults[at] = Reject(at, each.reason, each.kind)
        if checked.misfits:
            positions = [at for at in positions if at not in faults]
        kept = [rows[at] for at in positions] if faults else rows
        made = self._batch(checked.records, kept) if as_batch or self._others else checked.records
        return Fitted(made, positions, [faults[at] for at in sorted(faults)])

    def _cleaned(self, records: Sequence[Record], faults: dict[int, Reject]) -> Sequence[Record]:
        """The records with values that Arrow knows; the `faults` are those that have others."""
        rows = [self._row(at, record, faults) for at, record in enumerate(records)]
        self._keep_order(rows)
        self._find_others(rows, faults)
        self._check_others(rows, faults)
        return rows

    def _keep_order(self, rows: Sequence[Record]) -> None:
        self._order |= dict.fromkeys(self._columns.schema.names)
        for row in rows:
            self._order |= dict.fromkeys(row)

    def _row(self, at: int, record: Record, faults: dict[int, Reject]) -> dict[str, Any]:
        try:
            return {name: self._value(value, name) for name, value in record.items()}
        except _MisfitError as error:
            faults[at] = Reject(at, error.reason, error.kind)
            return {}

    def _value(self, value: Any, path: str) -> Any:
        """The value with arrays and numbers of numpy as those of Python."""
        kind = type(value)
        if not isinstance(path, str):
            raise _MisfitError(f"a row has the column {path!r}, expected a name", "wrong-type")
        if kind is int and value not in _INTEGERS:
            raise _MisfitError(f"column {path}: {value} does not fit into 64 bits", "integer-range")
        if kind is float and self.finite and not math.isfinite(value):
            raise _MisfitError(f"column {path}: {value} has no JSON form", "nan")
        return value if kind in _PLAIN else self._inner(value, path)

    def _inner(self, value: Any, path: str) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            return self._value(value.tolist(), path)
        if isinstance(value, (list, tuple)):
            return [self._value(each, f"{path}[]") for each in value]
        if isinstance(value, Mapping):
            return {name: self._value(each, f"{path}.{name}") for name, each in value.items()}
        return value

    def _find_others(self, rows: Sequence[Record], faults: dict[int, Reject]) -> None:
        for at, row in enumerate(rows):
            for name, value in row.items():
                if type(value) not in _PLAIN and name not in self._others and _is_other(value):
                    self._learn(at, name, value, faults)

    def _learn(self, at: int, name: str, value: Any, faults: dict[int, Reject]) -> None:
        schema = self._columns.schema
        known = schema.field(name).type if name in schema.names else pa.null()
        found = f"found {type(value).__name__}"
        if not pa.types.is_null(known):
            faults[at] = Reject(at, f"column {name}: expected {known}, {found}", "wrong-type")
            return
        try:
            self._others[name] = pa.array([value]).type
        except (pa.ArrowException, TypeError, ValueError):
            faults[at] = Reject(at, f"column {name}: expected a value of a table, {found}", "wrong-type")

    def _check_others(self, rows: Sequence[Record], faults: dict[int, Reject]) -> None:
        for name, kind in self._others.items():
            if _fit([row.get(name) for row in rows], kind):
                continue
            for at, row in enumerate(rows):
                if not _fit([row.get(name)], kind):
                    found = f"expected {kind}, found {type(row[name]).__name__}"
                    faults[at] = Reject(at, f"column {name}: {found}", "wrong-type")

    def _without_others(self, rows: Sequence[Record]) -> Sequence[Record]:
        if not self._others:
            return rows if set(map(type, rows)) <= {dict} else [dict(row) for row in rows]
        return [{name: value for name, value in row.items() if name not in self._others} for row in rows]

    def _batch(self, plain: Sequence[Record], rows: Sequence[Record]) -> pa.RecordBatch:
        types = {each.name: each.type for each in self._columns.schema} | self._others
        fields = [(name, types[name]) for name in {**self._order, **types} if name in types]
        whole = [
            dict(one) | {name: row.get(name) for name in self._others}
            for one, row in zip(plain, rows, strict=True)
        ]
        # Through a struct array, because a batch made in another way loses its rows when it has no column.
        array: Any = pa.array(whole, pa.struct(fields))
        return pa.RecordBatch.from_struct_array(array)


class _MisfitError(Exception):
    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


def _is_plain(grid: Grid, *, finite: bool) -> bool:
    """Whether there are but values of JSON in all of the rows; seen at once, and not value by value."""
    names_are_text = all(isinstance(name, str) for name in grid.names)
    return names_are_text and all(_are_plain(cells, finite=finite) for cells in grid.cells.values())


def _are_plain(cells: Cells, *, finite: bool) -> bool:
    if not cells.kinds <= {*_PLAIN, list, dict}:
        return False
    if int in cells.kinds and not all(value in _INTEGERS for value in cells.values if type(value) is int):
        return False
    if (
        finite
        and float in cells.kinds
        and not all(math.isfinite(value) for value in cells.values if type(value) is float)
    ):
        return False
    if list in cells.kinds and not _are_plain(cells.items, finite=finite):
        return False
    return dict not in cells.kinds or _is_plain(cells.fields, finite=finite)


def _is_other(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_is_other, value))
    if isinstance(value, dict):
        return any(map(_is_other, value.values()))
    return type(value) not in _PLAIN


def _fit(values: Sequence[object], kind: pa.DataType) -> bool:
    """Whether they are values of that type, which Arrow would also make of some texts and numbers."""
    if any(type(value) in _OF_JSON for value in values):
        return False
    try:
        pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True
