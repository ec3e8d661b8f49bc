"""The work of a phase on the workers of a client, by `job_map`."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treadle import fray
from treadle.errors import PoisonedUnitError, RunError
from treadle.processing.placing import name_of
from treadle.processing.plugins import VARIABLE, load_plugins
from treadle.processing.unit_run import Phase, UnitResult, UnitWork, carry_out, raise_if_stopped
from treadle.storage import WorkUnit
from treadle.telemetry import UnitMeter

if TYPE_CHECKING:
    from treadle.processing.job import Job


@dataclass(frozen=True)
class UnitTask:
    """What a worker is sent once for a phase: called with a unit, it does the work.

    `plugins` are the modules that TREADLE_PLUGINS names where the run was started.
    """

    phase: Phase
    work: UnitWork
    bad_rows_left: int | None
    plugins: str

    def __call__(self, unit: WorkUnit) -> UnitResult:
        """Do the work with one unit."""
        load_plugins(self.plugins)
        return carry_out(self.phase, self.work, unit, meter_of(self.phase, unit), self.bad_rows_left)


def meter_of(phase: Phase, unit: WorkUnit) -> UnitMeter:
    """What measures the unit, where no metrics of the run are at hand."""
    return UnitMeter(unit.id, phase.name, counted=phase.counted, spans=phase.spans)


def results_of_workers(
    job: Job, phase: Phase, units: Sequence[WorkUnit], work: UnitWork
) -> Generator[UnitResult, None, None]:
    """The results in the order of `units`. Closing the generator ends what runs.

    A unit that kills its workers fails the run, with a checkpoint only after all other units.

    Raises:
        RunError: a unit kills every worker that it is given to.
        Whatever the first unit, in order, raised.
    """
    if not units:
        return
    poisoned: RunError | None = None
    task = UnitTask(phase, work, job.account.bad_rows_left, os.environ.get(VARIABLE, ""))
    with closing(_mapped(job, phase, task, units)) as results:
        for unit, result in zip(units, results, strict=True):
            if isinstance(result, UnitResult):
                yield result
                continue
            if not isinstance(result, PoisonedUnitError):
                raise result
            poisoned = poisoned or _poisoned(job, unit, result)
            if job.plan.checkpoint is None:
                break
    if poisoned is not None:
        raise poisoned


def _mapped(job: Job, phase: Phase, task: UnitTask, units: Sequence[WorkUnit]) -> Generator[Any, None, None]:
    section = job.manifest.parallelism
    return fray.job_map(
        task,
        units,
        client=job.workplace.client(),
        lanes=section.workers,
        assign=section.assign,
        weigh=_weight if section.assign == "static" else None,
        on_tick=lambda tick: _look_up(job, tick),
        name=f"{job.ctx.step_id}/{phase.name}",
        return_exceptions=True,
        label=name_of,
    )


def _weight(unit: WorkUnit) -> float:
    return max(1, unit.bytes)


def _look_up(job: Job, _tick: fray.Tick) -> None:
    raise_if_stopped(job.ctx)


def _poisoned(job: Job, unit: WorkUnit, error: PoisonedUnitError) -> RunError:
    kept = "the other units are kept in the checkpoint; " if job.plan.checkpoint is not None else ""
    failure = RunError(
        f"step {job.ctx.step_id}: unit {name_of(unit)} ended {error.kills} workers, the last: {error.how}; "
        f"{kept}look at what that file holds, or leave it out of the inputs, and run again (fewer workers, "
        "if they ran out of memory)"
    )
    failure.__cause__ = error
    return failure
