"""Accounts for every row that a run reads: it went into an output, was filtered, or was rejected.

The `Account` adds these up over all units, feeds the metrics, reports finished units to the sink, and ends
the run when there are more bad rows than the section `errors` of the manifest allows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treadle.domain.result import Counters, Reject
from treadle.errors import AccountError, RunError
from treadle.processing.rejections import REASONS_SHOWN, Rejections, rejected_rows
from treadle.storage import RowBatch, WorkUnit
from treadle.telemetry import UnitDone, UnitReport

if TYPE_CHECKING:
    from treadle.processing.started import StartedRun
    from treadle.storage.session import Session

ROW_COUNTS = ("rows_in", "rows_out", "filtered", "rejected")


@dataclass(frozen=True)
class UnitCount:
    """What became of the rows of one unit; `resumed` when an earlier run had done it already."""

    unit: WorkUnit
    counters: Counters
    resumed: bool = False


@dataclass(frozen=True)
class FinishedUnit:
    """What the account is told of a unit that was worked on; `report` is what was measured of it."""

    unit: WorkUnit
    counters: Counters
    seconds: float
    phase: str = "main"
    counted: bool = True
    first_reasons: Sequence[str] = ()
    report: UnitReport | None = None


class Account:
    """The counters of one run, kept per unit. For one thread at a time: the one that writes."""

    def __init__(self, run: StartedRun, session: Session) -> None:
        self._run = run
        self._session = session
        self._rules = run.manifest.errors
        self._open: dict[str, Counters] = {}
        self._units: list[UnitCount] = []
        self._total = Counters()
        self._rejections = Rejections(self._rules, session.reject)
        self._since = time.perf_counter()

    @property
    def units(self) -> tuple[UnitCount, ...]:
        """The units accounted for so far, by their place among the units."""
        return tuple(sorted(self._units, key=lambda each: each.unit.index))

    @property
    def first_reasons(self) -> tuple[str, ...]:
        """Why the first rejected rows were, of those that this run has worked on: `place: reason`."""
        return tuple(self._rejections.first_reasons)

    @property
    def bad_rows_left(self) -> int | None:
        """How many more rows may be bad; None: any number."""
        limit = self._rules.max_bad_rows
        return None if limit is None else max(0, limit - self._total.rejected)

    def settle(
        self,
        unit: WorkUnit,
        batch: RowBatch,
        *,
        out: int,
        filtered: int = 0,
        rejects: Sequence[Reject] = (),
        extra: Mapping[str, int] | None = None,
    ) -> None:
        """Record what became of the rows of `batch`, for a pattern that works in this process.

        Its bad rows are rejected along with `rejects`, by line.

        Raises:
            AccountError: the rows of the batch are not out + filtered + rejects, or `extra` has such a name.
            BadRowError: there is a rejected row, and the manifest says `fail`.
            RunError: more rejected rows than `errors.max_bad_rows`.
        """
        counters = batch_counters(batch, out, filtered, rejects, extra or {})
        self._open[unit.id] = self._open.get(unit.id, Counters()) + counters
        self._count(counters)
        self._rejections.take(rejected_rows(batch, rejects))
        self._check_limit()

    def note(self, name: str, count: int) -> None:
        """Add to one of the further sums of the run, such as the number of terms."""
        self._count(Counters(extra={name: count}))

    def end_unit(self, unit: WorkUnit) -> None:
        """Report the unit as done, for a pattern that settles here; its seconds are those since the last."""
        now = time.perf_counter()
        counters = self._open.pop(unit.id, Counters())
        self._units.append(UnitCount(unit, counters))
        self._tell(FinishedUnit(unit, counters, now - self._since))
        self._since = now

    def add_unit(self, done: FinishedUnit) -> None:
        """Add a unit that was worked on, here or by a worker, and report it as done.

        Raises:
            RunError: more rejected rows in all than `errors.max_bad_rows`.
        """
        self._total += done.counters
        room = REASONS_SHOWN - len(self._rejections.first_reasons)
        self._rejections.first_reasons.extend(done.first_reasons[:room])
        if done.counted:
            self._units.append(UnitCount(done.unit, done.counters))
        self._check_limit()
        self._tell(done)

    def add_resumed(self, unit: WorkUnit, counters: Counters, *, counted: bool) -> None:
        """Add a unit that an earlier run has done."""
        self._total += counters
        if counted:
            self._units.append(UnitCount(unit, counters, resumed=True))
        self._check_limit()

    def close(self) -> Counters:
        """The counters of the whole run.

        Raises:
            RunError: a larger part of the rows was rejected than `errors.max_bad_fraction`.
        """
        limit = self._rules.max_bad_fraction
        if limit is not None and self._total.rejected > limit * self._total.rows_in:
            raise self._too_many(f"errors.max_bad_fraction allows {limit:g} of them")
        return self._total

    def _count(self, counters: Counters) -> None:
        self._total += counters
        if self._run.metrics is not None:
            for name, count in named_counts(counters).items():
                self._run.metrics.add(name, count)

    def _tell(self, done: FinishedUnit) -> None:
        counts = named_counts(done.counters)
        event = UnitDone(
            self._run.ctx.run_id,
            done.unit.id,
            counts,
            done.seconds,
            phase=done.phase,
            bytes=done.unit.bytes,
            report=done.report,
        )
        self._run.sink.emit(event)

    def _check_limit(self) -> None:
        limit = self._rules.max_bad_rows
        if limit is not None and self._total.rejected > limit:
            raise self._too_many(f"errors.max_bad_rows allows {limit:,}")

    def _too_many(self, rule: str) -> RunError:
        count, rows = self._total.rejected, self._total.rows_in
        summary = f"{count:,} of {rows:,} rows read are bad, {rule}; the first:"
        lines = [summary, *self._rejections.first_reasons]
        if self._rules.on_bad_row == "quarantine":
            self._session.publish_quarantine()
            lines.append(f"all of them are in {self._run.plan.quarantine}")
        return RunError("\n  ".join(lines))


def named_counts(counters: Counters) -> dict[str, int]:
    """The counters by name, as events and metrics carry them."""
    rows = (counters.rows_in, counters.rows_out, counters.filtered, counters.rejected)
    return {**dict(zip(ROW_COUNTS, rows, strict=True)), **counters.extra}


def counters_of(counts: Mapping[str, int]) -> Counters:
    """The counters that `named_counts` gave these names."""
    extra = {name: count for name, count in counts.items() if name not in ROW_COUNTS}
    rows_in, rows_out, filtered, rejected = (counts.get(name, 0) for name in ROW_COUNTS)
    return Counters(rows_in, rows_out, filtered, rejected, extra)


def batch_counters(
    batch: RowBatch, out: int, filtered: int, rejects: Sequence[Reject], extra: Mapping[str, int]
) -> Counters:
    """The counters of one batch.

    Raises:
        AccountError: the rows of the batch are not out + filtered + rejects, or `extra` has such a name.
    """
    _check_sum(batch, out, filtered, rejects)
    _check_names(batch, extra)
    rows_in = batch.num_rows + len(batch.bad)
    return Counters(rows_in, out, filtered, len(rejects) + len(batch.bad), extra)


def _check_sum(batch: RowBatch, out: int, filtered: int, rejects: Sequence[Reject]) -> None:
    rows = batch.num_rows
    indices = {each.index for each in rejects}
    if len(indices) < len(rejects) or not all(index in range(rows) for index in indices):
        listed = ", ".join(str(each.index) for each in rejects)
        raise AccountError(
            f"{place_of(batch)}: rejects must be distinct rows from 0 to {rows - 1}, got {listed}"
        )
    if filtered < 0 or rows != out + filtered + len(rejects):
        raise AccountError(
            f"{place_of(batch)}: {rows} rows came in, but {out} out + {filtered} filtered "
            f"+ {len(rejects)} rejected make {out + filtered + len(rejects)}"
        )


def _check_names(batch: RowBatch, extra: Mapping[str, int]) -> None:
    """A further sum named like one of the account would be taken for it in events and metrics."""
    if taken := sorted(set(extra) & set(ROW_COUNTS)):
        raise AccountError(f"{place_of(batch)}: a further sum cannot be called {', '.join(taken)}: rename it")


def place_of(batch: RowBatch) -> str:
    """The file of a batch and, when it has rows, their lines: for messages."""
    lines = batch.lines
    return f"{batch.source}, lines {lines[0]} to {lines[-1]}" if lines else batch.source
