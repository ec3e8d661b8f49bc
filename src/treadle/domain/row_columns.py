"""Transforms that choose, drop and rename columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treadle.domain.row_step import Record, RowFunction, RowsOfStep, RowStep, Stepped
from treadle.domain.row_text import check_names
from treadle.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SelectColumns:
    """Keeps these columns, in this order."""

    columns: Sequence[str]

    def __post_init__(self) -> None:
        check_names("columns", self.columns)

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return RowStep(self._records, self._batches, tuple(self.columns))

    def _records(self, rows: Sequence[Record]) -> Stepped:
        return _all([{name: row.get(name) for name in self.columns} for row in rows])

    def _batches(self, rows: pa.RecordBatch) -> Stepped:
        return _all(rows.select(list(self.columns)))


@dataclass(frozen=True)
class DropColumns:
    """Leaves these columns out. They must be there: a name that was misspelt would leave a column in."""

    columns: Sequence[str]

    def __post_init__(self) -> None:
        check_names("columns", self.columns)

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return RowStep(self._records, self._batches, tuple(self.columns))

    def _records(self, rows: Sequence[Record]) -> Stepped:
        gone = set(self.columns)
        return _all([{name: value for name, value in row.items() if name not in gone} for row in rows])

    def _batches(self, rows: pa.RecordBatch) -> Stepped:
        return _all(rows.select([name for name in rows.schema.names if name not in self.columns]))


@dataclass(frozen=True)
class RenameColumns:
    """Gives columns other names, old to new, all at once."""

    columns: Mapping[str, str]

    def __post_init__(self) -> None:
        check_names("columns", list(self.columns))
        if len(set(self.columns.values())) < len(self.columns):
            raise ArgumentError(f"columns: two columns would get one name in {dict(self.columns)}")

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return RowStep(self._records, self._batches, tuple(self.columns))

    def _records(self, rows: Sequence[Record]) -> Stepped:
        self._check(dict.fromkeys(name for row in rows for name in row))
        return _all([{self.columns.get(name, name): value for name, value in row.items()} for row in rows])

    def _batches(self, rows: pa.RecordBatch) -> Stepped:
        self._check(dict.fromkeys(rows.schema.names))
        return _all(rows.rename_columns([self.columns.get(name, name) for name in rows.schema.names]))

    def _check(self, present: Mapping[str, object]) -> None:
        for old, new in self.columns.items():
            if new in present and new not in self.columns:
                raise ArgumentError(f"rename: column {old!r} cannot become {new!r}, which is there already")


def _all(rows: RowsOfStep) -> Stepped:
    return Stepped(rows, range(len(rows)))
