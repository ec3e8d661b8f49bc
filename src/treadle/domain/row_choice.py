"""Transforms that keep some of the rows, by the value of a column or by chance, and the hash of columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from treadle.domain.row_step import (
    Computed,
    Record,
    RowFunction,
    RowStep,
    Stepped,
    Values,
    column_step,
    rows_at,
    texts,
)
from treadle.domain.row_text import as_texts, check_names, check_pattern
from treadle.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

Scalar = bool | int | float | str


@dataclass(frozen=True)
class KeepIf:
    """Keeps rows by the value of a column: one condition, or `at_least` with `at_most`. A null is not kept.

    `matches` is a pattern of RE2 that is found anywhere in a text. A value that cannot be compared with the
    bounds, or is no text where a text is matched, makes the row bad.
    """

    column: str
    equals: Scalar | None = None
    one_of: Sequence[Scalar] | None = None
    at_least: int | float | str | None = None
    at_most: int | float | str | None = None
    matches: str | None = None

    def __post_init__(self) -> None:
        given = [each.name for each in fields(self)[1:] if getattr(self, each.name) is not None]
        if len(given) != 1 and given != ["at_least", "at_most"]:
            known = "equals, one_of, at_least, at_most, matches"
            found = ", ".join(given) or "none"
            raise ArgumentError(f"one condition of {known} (or at_least with at_most) is needed, got {found}")
        if self.matches is not None:
            check_pattern(self.matches, "matches")
        if given[1:] and isinstance(self.at_least, str) != isinstance(self.at_most, str):
            raise ArgumentError("at_most: must be a text when at_least is one, and a number when it is one")

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return column_step([self.column], self._compute)

    def _compute(self, values: Mapping[str, Values]) -> Computed:
        column = values[self.column]
        if self.matches is not None:
            from pyarrow import compute as pc  # here: see `row_step`

            found = pc.match_substring_regex(as_texts(column), pattern=self.matches).fill_null(
                fill_value=False
            )
            return Computed(kept=[each is True for each in found.to_pylist()], faults=texts(values))
        if self.at_least is None and self.at_most is None:
            wanted = {_typed(each) for each in (self.one_of if self.equals is None else [self.equals]) or ()}
            return Computed(kept=[_scalar(each) and _typed(each) in wanted for each in column])
        return self._bounded(column)

    def _bounded(self, column: Values) -> Computed:
        textual = isinstance(self.at_least if self.at_most is None else self.at_most, str)
        faults = {
            at: f"{self.column} is {type(value).__name__}, expected a {'string' if textual else 'number'}"
            for at, value in enumerate(column)
            if value is not None and not _comparable(value, textual=textual)
        }
        kept = [
            value is not None and at not in faults and self._within(value) for at, value in enumerate(column)
        ]
        return Computed(kept=kept, faults=faults)

    def _within(self, value: Any) -> bool:
        above = self.at_least is None or value >= self.at_least
        return bool(above and (self.at_most is None or value <= self.at_most))


@dataclass(frozen=True)
class SampleRows:
    """Keeps about this fraction of the rows, by a hash of columns (none named: of all).

    Rows with the same values are kept or left out together, in every run, file and order; another `seed`
    makes another choice.
    """

    fraction: float
    columns: Sequence[str] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise ArgumentError(f"fraction: must be from 0 to 1, got {self.fraction}")
        if self.columns:
            check_names("columns", self.columns)

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return RowStep(self._records, self._batches, tuple(self.columns))

    def _records(self, rows: Sequence[Record]) -> Stepped:
        origins = self._chosen(rows)
        return Stepped(rows_at(rows, origins), origins)

    def _batches(self, rows: pa.RecordBatch) -> Stepped:
        read = rows.select(list(self.columns)) if self.columns else rows
        origins = self._chosen(read.to_pylist())
        return Stepped(rows_at(rows, origins), origins)

    def _chosen(self, rows: Sequence[Record]) -> list[int]:
        limit = self.fraction * 2.0**64
        return [at for at, row in enumerate(rows) if self._number(row) < limit]

    def _number(self, row: Record) -> int:
        read = [row.get(name) for name in self.columns] if self.columns else row
        content = f"{self.seed}:".encode() + canonical(read)
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


@dataclass(frozen=True)
class HashColumns:
    """Puts a hash of columns, in hex, into another column.

    Of one text it is the hash of its UTF-8, as other tools make it; of anything else that of the values as a
    JSON list. It is null where all columns are null. BLAKE2b is cut to 32 bytes.
    """

    columns: Sequence[str]
    into: str = "hash"
    method: Literal["sha256", "blake2b"] = "sha256"

    def __post_init__(self) -> None:
        check_names("columns", self.columns)
        if self.method not in ("sha256", "blake2b"):
            raise ArgumentError(f"method: must be sha256 or blake2b, got {self.method!r}")

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return column_step(self.columns, self._compute, "string")

    def _compute(self, values: Mapping[str, Values]) -> Computed:
        rows = zip(*(values[name] for name in self.columns), strict=True)
        return Computed({self.into: [self._hashed(row) for row in rows]})

    def _hashed(self, row: tuple[Any, ...]) -> str | None:
        if all(value is None for value in row):
            return None
        alone = len(row) == 1 and isinstance(row[0], str)
        content = row[0].encode("utf-8", "surrogatepass") if alone else canonical(list(row))
        if self.method == "sha256":
            return hashlib.sha256(content).hexdigest()
        return hashlib.blake2b(content, digest_size=32).hexdigest()


def canonical(value: object) -> bytes:
    """The value as JSON with sorted names: the same whether a row was a record or lay in a typed column.

    So a whole number that became a fraction is whole again, and a field that is null is left out.
    """
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return text.encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _scalar(value: object) -> bool:
    return isinstance(value, (bool, int, float, str))


def _typed(value: object) -> tuple[bool, object]:
    """True and 1 are one in Python, and two in a row."""
    return isinstance(value, bool), value


def _comparable(value: object, *, textual: bool) -> bool:
    if textual:
        return isinstance(value, str)
    return isinstance(value, (int, float)) and not isinstance(value, bool)
