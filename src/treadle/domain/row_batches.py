"""Transforms by a function of a whole batch. A batch at which it raises is tried again row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from treadle.domain.result import ProcessResult, Reject
from treadle.domain.row_function import failure_text, needed
from treadle.domain.row_step import RowFunction, RowsOfStep, RowStep, Stepped, joined_rows
from treadle.errors import MissingColumnError, RunError, StoppedError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class MapBatches:
    """Rows for a batch of rows: `entry` gets a record batch and returns one, or a `ProcessResult`.

    Fewer rows: the others were filtered. More are refused. It is called with single rows when a batch makes
    it raise, so a row must not depend on the other rows of its batch.
    """

    entry: str

    def step(self, function: RowFunction | None = None) -> RowStep:
        """The step, with the function that `entry` names."""
        return batch_step(needed(function, self.entry), self.entry)


def batch_step(function: RowFunction, name: str) -> RowStep:
    """The step of a function of record batches.

    Calling it raises MissingColumnError as the function does, RunError when that gives more rows than it got
    or anything but rows.
    """
    return RowStep(batches=_Batches(function, name))


@dataclass(frozen=True)
class _Batches:
    function: RowFunction
    name: str

    def __call__(self, rows: pa.RecordBatch) -> Stepped:
        try:
            given = self.function(rows)
        except (MemoryError, StoppedError, MissingColumnError):
            raise
        except Exception as error:  # noqa: BLE001 - told as the reason of the row that it belongs to
            return self._one_by_one(rows) if rows.num_rows > 1 else self._failed(error)
        return self._stepped(given, rows)

    def _failed(self, error: Exception) -> Stepped:
        return Stepped([], [], (Reject(0, failure_text(error, self.function), "failed"),))

    def _one_by_one(self, rows: pa.RecordBatch) -> Stepped:
        joined = _Joined()
        for at in range(rows.num_rows):
            joined.add(at, self(rows.slice(at, 1)))
        return joined.stepped(self.name)

    def _stepped(self, given: object, rows: pa.RecordBatch) -> Stepped:
        if not isinstance(given, ProcessResult):
            made = self._checked(given, rows, 0)
            return Stepped(made, range(len(made)) if len(made) == rows.num_rows else None)
        if set(given.outputs) != {"rows"}:
            raise RunError(f"{self.name} gave the outputs {sorted(given.outputs)}, expected 'rows' alone")
        made = self._checked(given.outputs["rows"], rows, len(given.rejects))
        return Stepped(made, _origins(given, made, rows), given.rejects, given.counters.extra)

    def _checked(self, made: object, rows: pa.RecordBatch, rejected: int) -> RowsOfStep:
        import pyarrow as pa  # here: see `row_step`

        if not isinstance(made, (pa.RecordBatch, list, tuple)):
            found = type(made).__name__
            raise RunError(f"{self.name} returned {found}, expected a RecordBatch or a ProcessResult")
        if len(made) + rejected > rows.num_rows:
            raise RunError(
                f"{self.name} gave {len(made)} rows and {rejected} rejects for {rows.num_rows} rows: a batch "
                "cannot become more rows; use map with many: true"
            )
        return made


def _origins(given: ProcessResult, made: RowsOfStep, rows: pa.RecordBatch) -> Sequence[int] | None:
    """The positions that the result tells, or those that are left when no row was filtered."""
    if given.kept is not None:
        return given.kept
    refused = {each.index for each in given.rejects}
    if len(made) + len(refused) < rows.num_rows:
        return None
    return [at for at in range(rows.num_rows) if at not in refused]


@dataclass
class _Joined:
    """What a function gave for single rows, joined again."""

    parts: list[RowsOfStep] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    extra: dict[str, int] = field(default_factory=dict)

    def add(self, at: int, one: Stepped) -> None:
        self.origins += [at] * len(one.rows)
        self.rejects += [Reject(at, each.reason, each.kind) for each in one.rejects]
        for name, count in one.extra.items():
            self.extra[name] = self.extra.get(name, 0) + count
        if len(one.rows):
            self.parts.append(one.rows)

    def stepped(self, name: str) -> Stepped:
        import pyarrow as pa  # here: see `row_step`

        try:
            rows = joined_rows(self.parts)
        except pa.ArrowException as error:
            raise RunError(f"{name} gave columns of several types for single rows: {error}") from error
        return Stepped(rows, self.origins, tuple(self.rejects), self.extra)
