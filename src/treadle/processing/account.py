"""Accounts for every row that a run reads: it went into an output, was filtered, or was rejected.

The `Account` adds these up, feeds the metrics, reports finished units to the sink, and treats rejected rows
as the section `errors` of the manifest says.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from treadle.domain.result import Counters, Reject
from treadle.errors import AccountError, BadRowError, RunError
from treadle.processing.job import Job
from treadle.storage import BadRow, RowBatch, WorkUnit
from treadle.storage.dataset import RAW_CHARACTERS
from treadle.telemetry import UnitDone

_REASONS_SHOWN = 3


class Account:
    """The counters of one run, kept per unit. For one thread at a time: the one that writes."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._rules = job.manifest.errors
        self._units: defaultdict[str, Counters] = defaultdict(Counters)
        self._total = Counters()
        self._first_reasons: list[str] = []
        self._since = time.perf_counter()

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
        """Record what became of the rows of `batch`; its bad rows are rejected along with `rejects`, by line.

        Raises:
            AccountError: the rows of the batch are not out + filtered + rejects, or `extra` has such a name.
            BadRowError: there is a rejected row, and the manifest says `fail`.
            RunError: more rejected rows than `errors.max_bad_rows`.
        """
        _check_sum(batch, out, filtered, rejects)
        _check_names(batch, extra or {})
        rejected = [*batch.bad, *_bad_rows(batch, rejects)]
        rows_in = batch.rows.num_rows + len(batch.bad)
        counters = Counters(rows_in, out, filtered, len(rejected), extra or {})
        self._units[unit.id] += counters
        self._count(counters)
        for bad in sorted(rejected, key=lambda each: each.line):
            self._reject(bad)
        limit = self._rules.max_bad_rows
        if limit is not None and self._total.rejected > limit:
            raise self._too_many(f"errors.max_bad_rows allows {limit:,}")

    def note(self, name: str, count: int) -> None:
        """Add to one of the further sums of the run, such as the number of terms."""
        self._count(Counters(extra={name: count}))

    def end_unit(self, unit: WorkUnit) -> None:
        """Report the unit to the sink as done; its seconds are those since the previous one ended."""
        now = time.perf_counter()
        counts = named_counts(self._units.pop(unit.id, Counters()))
        self._job.sink.emit(UnitDone(self._job.ctx.run_id, unit.id, counts, now - self._since))
        self._since = now

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
        if self._job.metrics is not None:
            for name, count in named_counts(counters).items():
                self._job.metrics.add(name, count)

    def _reject(self, bad: BadRow) -> None:
        if self._rules.on_bad_row == "fail":
            raise BadRowError(bad.source, bad.line, bad.reason)
        if self._rules.on_bad_row == "quarantine":
            self._job.session.reject(bad)
        if len(self._first_reasons) < _REASONS_SHOWN:
            self._first_reasons.append(f"{bad.source}:{bad.line}: {bad.reason}")

    def _too_many(self, rule: str) -> RunError:
        count, rows = self._total.rejected, self._total.rows_in
        summary = f"{count:,} of {rows:,} rows read are bad, {rule}; the first:"
        lines = [summary, *self._first_reasons]
        if self._rules.on_bad_row == "quarantine":
            self._job.session.publish_quarantine()
            lines.append(f"all of them are in {self._job.plan.quarantine}")
        return RunError("\n  ".join(lines))


def named_counts(counters: Counters) -> dict[str, int]:
    """The counters by name, as events and metrics carry them."""
    return {
        "rows_in": counters.rows_in,
        "rows_out": counters.rows_out,
        "filtered": counters.filtered,
        "rejected": counters.rejected,
        **counters.extra,
    }


def _check_sum(batch: RowBatch, out: int, filtered: int, rejects: Sequence[Reject]) -> None:
    rows = batch.rows.num_rows
    indices = {each.index for each in rejects}
    if len(indices) < len(rejects) or not indices <= set(range(rows)):
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
    if taken := sorted(set(extra) & set(named_counts(Counters()))):
        raise AccountError(f"{place_of(batch)}: a further sum cannot be called {', '.join(taken)}: rename it")


def place_of(batch: RowBatch) -> str:
    """The file of a batch and, when it has rows, their lines: for messages."""
    lines = batch.lines
    return f"{batch.source}, lines {lines[0]} to {lines[-1]}" if lines else batch.source


def _bad_rows(batch: RowBatch, rejects: Sequence[Reject]) -> Iterator[BadRow]:
    for reject in rejects:
        row = batch.rows.slice(reject.index, 1).to_pylist()[0]
        raw = json.dumps(row, ensure_ascii=False, default=str)[:RAW_CHARACTERS]
        yield BadRow(batch.source, batch.lines[reject.index], reject.reason, raw)
