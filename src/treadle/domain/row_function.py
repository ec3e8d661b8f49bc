"""Transforms by a function of one row, `map` and `filter`: a row at which it raises is bad, and no other."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from treadle.domain.result import Reject
from treadle.domain.row_step import Record, RowFunction, RowStep, Stepped, rows_at
from treadle.errors import ArgumentError, StoppedError

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 300


@dataclass(frozen=True)
class MapRows:
    """A row for each row: `entry` gets a record, a dict, and returns another, or None to filter the row.

    With `many` it may return a list of dicts. The account is one of rows read: a row counts as one row out if
    any of its rows is given out, and the extra sum `rows_made` counts those.
    """

    entry: str
    many: bool = False

    def step(self, function: RowFunction | None = None) -> RowStep:
        """The step, with the function that `entry` names."""
        mapping = _Mapping(needed(function, self.entry), self.entry, many=self.many)
        return RowStep(mapping, many=self.many)


@dataclass(frozen=True)
class FilterRows:
    """Keeps the rows for which `entry`, which gets a record, returns True."""

    entry: str

    def step(self, function: RowFunction | None = None) -> RowStep:
        """The step, with the function that `entry` names."""
        choice = _Choosing(needed(function, self.entry), self.entry)
        return RowStep(choice.records, choice.batches)


class Failure(NamedTuple):
    """Why a function gave nothing that can be used."""

    reason: str


def needed(function: RowFunction | None, entry: str) -> RowFunction:
    """The function. Raises ArgumentError when there is none."""
    if function is None:
        raise ArgumentError(f"entry: the function {entry!r} must be imported and given to `step`")
    return function


def results_of(function: RowFunction, rows: Sequence[Record]) -> list[object]:
    """What the function returns for each row, or a Failure.

    Raises MemoryError and StoppedError, no fault of a row.
    """
    results: list[object] = []
    for row in rows:
        try:
            results.append(function(dict(row)))
        except (MemoryError, StoppedError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it raises, it is the row's and is told in the quarantine
            results.append(Failure(failure_text(error, function)))
    return results


def failure_text(error: Exception, function: RowFunction) -> str:
    """The error and the last line of the function's own file that it came from."""
    what = " ".join(str(error).split())
    what = what if len(what) <= _SHOWN else f"{what[:_SHOWN]}..."
    frames = traceback.extract_tb(error.__traceback__)[1:]  # without the call from here
    own = getattr(getattr(function, "__code__", None), "co_filename", None)
    frame = next((each for each in reversed(frames) if each.filename == own), frames[-1] if frames else None)
    place = "" if frame is None else f" ({Path(frame.filename).name}:{frame.lineno} in {frame.name})"
    return f"{type(error).__name__}: {what}{place}" if what else f"{type(error).__name__}{place}"


@dataclass(frozen=True)
class _Mapping:
    function: RowFunction
    entry: str
    many: bool

    def __call__(self, rows: Sequence[Record]) -> Stepped:
        results = results_of(self.function, rows)
        if set(map(type, results)) <= {dict}:  # mostly; the rest is looked at more slowly
            return Stepped(cast("list[Record]", results), range(len(rows)))
        made: list[Record] = []
        origins: list[int] = []
        rejects: list[Reject] = []
        for at, given in enumerate(results):
            several = self._several(given)
            if isinstance(several, Failure):
                rejects.append(Reject(at, several.reason, "failed"))
            else:
                made += several
                origins += [at] * len(several)
        return Stepped(made, origins, tuple(rejects))

    def _several(self, given: object) -> Sequence[Record] | Failure:
        if given is None:
            return ()
        if isinstance(given, Mapping):
            return (given,)
        if isinstance(given, Failure):
            return given
        records = _records(given)
        return records if self.many and records is not None else self._unusable(given)

    def _unusable(self, given: object) -> Failure:
        expected = "a dict, a list of dicts or None" if self.many else "a dict or None"
        advice = "; a list needs many: true" if not self.many and _records(given) is not None else ""
        return Failure(f"{self.entry} returned {type(given).__name__}, expected {expected}{advice}")


@dataclass(frozen=True)
class _Choosing:
    function: RowFunction
    entry: str

    def records(self, rows: Sequence[Record]) -> Stepped:
        origins, rejects = self._chosen(rows)
        return Stepped(rows_at(rows, origins), origins, rejects)

    def batches(self, rows: pa.RecordBatch) -> Stepped:
        origins, rejects = self._chosen(rows.to_pylist())
        return Stepped(rows_at(rows, origins), origins, rejects)

    def _chosen(self, rows: Sequence[Record]) -> tuple[list[int], tuple[Reject, ...]]:
        answers = results_of(self.function, rows)
        if not set(map(type, answers)) <= {bool}:
            answers = list(map(self._answer, answers))
        rejects = (
            Reject(at, each.reason, "failed") for at, each in enumerate(answers) if isinstance(each, Failure)
        )
        return [at for at, each in enumerate(answers) if each is True], tuple(rejects)

    def _answer(self, kept: object) -> bool | Failure:
        import numpy as np  # here: few functions return one of its values

        if isinstance(kept, (bool, Failure)):
            return kept
        if isinstance(kept, np.bool_):
            return bool(kept)
        return Failure(f"{self.entry} returned {type(kept).__name__}, expected True or False")


def _records(given: object) -> Sequence[Record] | None:
    """`given` as records, None when it is something else."""
    if isinstance(given, (list, tuple)) and all(isinstance(each, Mapping) for each in given):
        return given
    return None
