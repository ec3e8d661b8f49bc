"""A chain of row transforms over the batches of one unit, and the account of each batch.

Rows flow through the steps as Python records or as a record batch, with the position in the batch of the row
that each was made of, so that a row that a later step refuses is known. Where a function of whole batches
leaves rows out without telling which, and a later step refuses some of the others, the chain goes over the
batch once more, a row at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from treadle.domain.result import Reject
from treadle.domain.row_step import Record, RowsOfStep, RowStep, Stepped, joined_rows, records_of, rows_at
from treadle.errors import ArgumentError, MissingColumnError
from treadle.processing.row_fitting import Fitting
from treadle.storage import RowBatch

ROWS_MADE = "rows_made"


@dataclass(frozen=True)
class Chained:
    """What became of a batch: the rows of the output, and the counts of the rows that were read."""

    rows: RowsOfStep
    out: int
    filtered: int
    rejects: tuple[Reject, ...]
    extra: Mapping[str, int]


class Chain:
    """The steps, for the batches of one unit in order. `json`: the output is one of JSON, without NaN."""

    def __init__(self, steps: Sequence[RowStep], *, json: bool) -> None:
        self._steps = steps
        self._places = [_Place() for _ in steps]
        self._json = json
        self._last = Fitting(finite=json)
        self._all_records = all(step.records is not None for step in steps)
        self._many = any(step.many for step in steps)

    def __call__(self, batch: RowBatch) -> Chained:
        """Transform one batch, which has rows.

        Raises:
            MissingColumnError: no row of the unit so far has a column that a step needs.
            RunError: a function of batches gave more rows than it got.
            ArgumentError: the columns do not allow what a step does.
        """
        start: RowsOfStep = batch.records if self._starts_as_records(batch) else batch.rows
        if self._places and batch.schema is not None:
            self._places[0].seen.update(batch.schema.names)
        try:
            return self._result(self._finish(self._flow(start)), batch.num_rows)
        except _Unplaced:
            return self._result(self._finish(self._one_by_one(start)), batch.num_rows)

    def _starts_as_records(self, batch: RowBatch) -> bool:
        return batch.given is not None and self._all_records

    def _flow(self, start: RowsOfStep) -> _Flow:
        flow = _Flow(start, range(len(start)), len(start))
        for step, place in zip(self._steps, self._places, strict=True):
            if not len(flow.rows):
                break
            self._take(step, place, flow)
        return flow

    def _finish(self, flow: _Flow) -> _Flow:
        if flow.loose and not isinstance(flow.rows, pa.RecordBatch):
            flow.fit(self._last, as_batch=not self._json)
        flow.settle(may_repeat=self._many)
        return flow

    def _take(self, step: RowStep, place: _Place, flow: _Flow) -> None:
        place.check(step.needs, flow.rows)
        if step.batches is None or (step.records is not None and not isinstance(flow.rows, pa.RecordBatch)):
            flow.loose = flow.loose or step.batches is None
            flow.follow_step(_records_step(step)(records_of(flow.rows)))
            return
        if not isinstance(flow.rows, pa.RecordBatch):
            flow.fit(place.fitting, as_batch=True)
        if isinstance(flow.rows, pa.RecordBatch) and len(flow.rows):
            flow.loose = True
            flow.follow_step(step.batches(flow.rows))

    def _one_by_one(self, start: RowsOfStep) -> _Flow:
        whole = _Flow([], [], len(start))
        parts: list[RowsOfStep] = []
        origins: list[int] = []
        for at in range(len(start)):
            one = self._flow(rows_at_position(start, at))
            parts += [one.rows] if len(one.rows) else []
            origins += [at] * len(one.rows)
            whole.rejects += [Reject(at, each.reason, each.kind) for each in one.rejects]
            whole.add(one.extra)
            whole.loose = whole.loose or one.loose
        whole.rows, whole.origins = joined_rows(parts), origins
        return whole

    def _result(self, flow: _Flow, rows: int) -> Chained:
        out = len(flow.rows) if flow.origins is None else len(set(flow.origins))
        extra = dict(flow.extra)
        if self._many:
            extra[ROWS_MADE] = extra.get(ROWS_MADE, 0) + len(flow.rows)
        rejects = tuple(sorted(flow.rejects, key=lambda each: each.index))
        return Chained(flow.rows, out, rows - out - len(rejects), rejects, extra)


def rows_at_position(rows: RowsOfStep, at: int) -> RowsOfStep:
    """One of the rows, in the same form."""
    return rows.slice(at, 1) if isinstance(rows, pa.RecordBatch) else rows[at : at + 1]


@dataclass
class _Place:
    """What a step has seen of the unit: columns that rows had, the types of records that become a batch."""

    seen: set[str] = field(default_factory=set)
    fitting: Fitting = field(default_factory=Fitting)

    def check(self, needs: Sequence[str], rows: RowsOfStep) -> None:
        if isinstance(rows, pa.RecordBatch):
            _check(needs, rows.schema.names)
        elif not self.seen.issuperset(needs):
            self.seen.update(*rows)
            _check(needs, sorted(self.seen))


def _check(needs: Sequence[str], known: Sequence[str]) -> None:
    for name in needs:
        if name not in known:
            raise MissingColumnError(name, known)


def _records_step(step: RowStep) -> Callable[[Sequence[Record]], Stepped]:
    if step.records is None:
        raise ArgumentError("a step of a chain has neither a function of records nor one of batches")
    return step.records


class _Unplaced(Exception):  # noqa: N818 - no error: the word by which a batch is gone over a row at a time
    pass


@dataclass
class _Flow:
    """Rows on their way; `loose` when a function made them, so that their types are not known."""

    rows: RowsOfStep
    origins: Sequence[int] | None
    given: int
    rejects: list[Reject] = field(default_factory=list)
    extra: dict[str, int] = field(default_factory=dict)
    loose: bool = False

    def refuse(self, rejects: Sequence[Reject]) -> None:
        """Note rows, by their present positions, that cannot be used."""
        if rejects and self.origins is None:
            raise _Unplaced
        for each in rejects:
            self.rejects.append(Reject((self.origins or ())[each.index], each.reason, each.kind))

    def add(self, extra: Mapping[str, int]) -> None:
        for name, count in extra.items():
            self.extra[name] = self.extra.get(name, 0) + count

    def follow_step(self, stepped: Stepped) -> None:
        """Go on with what a step gave for the present rows."""
        self.refuse(stepped.rejects)
        self.add(stepped.extra)
        self.follow(stepped.rows, stepped.origins)

    def follow(self, rows: RowsOfStep, origins: Sequence[int] | None) -> None:
        """Go on with the rows of a step, which were made of the present ones at `origins`."""
        if self.given == 1:
            self.origins = [0] * len(rows)
        elif self.origins is None or origins is None:
            self.origins = None
        elif len(origins) < len(self.origins) or not isinstance(origins, range):
            self.origins = [self.origins[at] for at in origins]
        self.rows = rows

    def fit(self, fitting: Fitting, *, as_batch: bool) -> None:
        """Let rows that are records become rows of one type each column."""
        fitted = fitting.fit(records_of(self.rows), as_batch=as_batch)
        self.refuse(fitted.rejects)
        self.follow(fitted.rows, fitted.positions)

    def settle(self, *, may_repeat: bool) -> None:
        """One reason a row, and nothing of a row that was refused: of its rows another may have been good."""
        self.rejects = list({each.index: each for each in reversed(self.rejects)}.values())
        if not may_repeat:
            return
        if self.origins is None:
            raise _Unplaced
        refused = {each.index for each in self.rejects}
        kept = [at for at, origin in enumerate(self.origins) if origin not in refused]
        self.rows, self.origins = rows_at(self.rows, kept), [self.origins[at] for at in kept]
