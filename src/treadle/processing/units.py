"""`run_units`: the work of a run that is done unit by unit, in this process or on workers.

The walk of a unit:

1. a unit that an earlier run of the same checkpoint has finished is taken as it is;
2. otherwise `carry_out` (unit_run.py) does the work, here or on a worker (unit_task.py): it writes the unit's
   files, still hidden, and gives back their record;
3. the session accepts the record, the account adds the counts and may end the run, the sink is told.

Records come in the order of the units whatever order they were finished in, so the account, the first error
and the files are the same on every backend.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from treadle.processing.account import FinishedUnit, counters_of, named_counts
from treadle.processing.unit_run import Phase, UnitResult, UnitRun, UnitWork, carry_out, raise_if_stopped
from treadle.processing.unit_task import meter_of, results_of_workers
from treadle.storage import USUAL_BATCH_ROWS, Dataset, UnitRecord, WorkUnit
from treadle.telemetry import PhaseEnded, PhaseStarted, UnitMeter, UnitSkipped

if TYPE_CHECKING:
    from treadle.processing.job import Job

__all__ = ["UnitRun", "UnitWork", "run_units"]


def run_units(
    job: Job,
    phase: str,
    dataset: Dataset | None,
    units: Sequence[WorkUnit],
    work: UnitWork,
    *,
    counted: bool = True,
    depends: str = "",
    batch_rows: int = USUAL_BATCH_ROWS,
) -> tuple[UnitRecord, ...]:
    """Do `work` with each unit where `parallelism.backend` says; the records, in the order of `units`.

    `phase` names this pass over units, once for each run. The batches of a unit are those of `dataset`; None:
    the work reads for itself. The rows of a phase that is not `counted` are no part of the account: it looks
    at what another phase accounts for. `depends` changes when anything changes that the results depend on
    beside the manifest and the content of the unit, such as side inputs: then no unit of an earlier run is
    taken. `batch_rows` is how many rows a batch has at most where the manifest does not say.

    Raises:
        BadRowError: there is a bad row, and the manifest says `fail`.
        RunError: too many bad rows; or a unit kills every worker that it is given to.
        StoppedError: the step was asked to stop.
        Whatever `work` raised for the first unit, in the order of units, that failed.
    """
    digest = hashlib.sha256(depends.encode()).hexdigest() if depends else ""
    rows = job.manifest.parallelism.batch_rows or batch_rows
    staging = job.session.staging
    plan = Phase(phase, digest, dataset, counted, job.manifest, job.ctx, job.plan, staging, rows)
    since = time.perf_counter()
    size = sum(unit.bytes for unit in units)
    job.sink.emit(PhaseStarted(job.ctx.run_id, phase, len(units), size, job.workplace.lanes))
    done = dict(_done_before(job, plan, units))
    waiting = [unit for unit in units if unit.index not in done]
    with closing(_results(job, plan, waiting, work)) as results:
        for unit, result in zip(waiting, results, strict=True):
            job.session.accept(result.record, complete=result.complete)
            job.account.add_unit(_finished(plan, unit, result))
            done[unit.index] = result.record
    job.sink.emit(PhaseEnded(job.ctx.run_id, phase, time.perf_counter() - since))
    return tuple(done[unit.index] for unit in units)


def _done_before(job: Job, phase: Phase, units: Sequence[WorkUnit]) -> Iterator[tuple[int, UnitRecord]]:
    for unit in units:
        record = job.session.finished(phase.name, unit, phase.depends)
        if record is not None:
            counters = counters_of(record.counts)
            job.account.add_resumed(unit, counters, counted=phase.counted)
            counts = named_counts(counters)
            job.sink.emit(UnitSkipped(job.ctx.run_id, unit.id, counts, phase.name, unit.bytes))
            yield unit.index, record


def _results(
    job: Job, phase: Phase, units: Sequence[WorkUnit], work: UnitWork
) -> Generator[UnitResult, None, None]:
    if job.workplace.is_here:
        return _here(job, phase, units, work)
    return results_of_workers(job, phase, units, work)


def _here(
    job: Job, phase: Phase, units: Sequence[WorkUnit], work: UnitWork
) -> Generator[UnitResult, None, None]:
    for unit in units:
        raise_if_stopped(job.ctx)
        yield carry_out(phase, work, unit, _meter(job, phase, unit), job.account.bad_rows_left)


def _meter(job: Job, phase: Phase, unit: WorkUnit) -> UnitMeter:
    """One that is seen live, where there are metrics."""
    if job.metrics is None:
        return meter_of(phase, unit)
    return job.metrics.unit_meter(unit.id, phase.name, counted=phase.counted, spans=phase.spans)


def _finished(phase: Phase, unit: WorkUnit, result: UnitResult) -> FinishedUnit:
    return FinishedUnit(
        unit,
        result.counters,
        result.seconds,
        phase.name,
        counted=phase.counted,
        first_reasons=result.first_reasons,
        report=result.report,
    )
