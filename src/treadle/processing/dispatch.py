"""Runs a manifest: `run_from_manifest` is the walk, always in this order.

    load plugins
    load the manifest, merge params, fill placeholders
    check that the manifest is for this step; compile the storage plan
    emit the start of the run
        set up metrics, when the manifest asks for them
        check the manifest against its run type
        dispatch: a registered run type wins, else run.entry is imported and called
            open a session; the pattern reads, transforms and writes, all still hidden
            check the account: rows in = rows out + filtered + rejected
            commit: everything appears at once; on any failure the session is aborted
        finalize the metrics, once, whatever happened
    emit the end of the run, whatever happened

An error of the clean-up never hides an error of the work: it is added to that as a note.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from treadle.domain.result import Counters
from treadle.errors import AccountError, ManifestError, RunError
from treadle.kernel.unwind import Unwind
from treadle.manifest import Manifest, read_manifest
from treadle.processing.compile import StoragePlan, compile_step_manifest
from treadle.processing.context import RunContext
from treadle.processing.ending import Ending, open_events
from treadle.processing.entry import import_entry
from treadle.processing.job import Job, RunOutcome
from treadle.processing.plugins import load_plugins
from treadle.processing.runners import PatternRunner, check_manifest, get_pattern_runner, known_patterns
from treadle.storage import OutputManifest, Session
from treadle.telemetry import RunMetrics, RunStarted, Sink, finalize_metrics, setup_metrics


def run_from_manifest(
    manifest_path: str | os.PathLike[str],
    ctx: RunContext,
    user_params: Mapping[str, object] | None = None,
    *,
    sink: Sink | None = None,
) -> RunOutcome:
    """Run the manifest at `manifest_path`; `user_params` win over those of `ctx`, these over the defaults.

    Events go to `sink`, which stays open, and to the file `metrics.log` of the manifest when it names one.
    Outputs appear when the run has succeeded, all at once, and never otherwise.

    Raises:
        UsageError: a plugin, the manifest or a param is wrong; the problems of a manifest come all at once.
        RunError: the run could not be carried out (`BadRowError` and `AccountError` among others).
        KeyboardInterrupt: it was cancelled; everything was given back first.
    """
    load_plugins()
    ctx = ctx.with_params(user_params)
    manifest = read_manifest(manifest_path, ctx.params, {"run.id": ctx.run_id, "run.output": ctx.output_root})
    _check_step(manifest, ctx)
    plan = compile_step_manifest(manifest, ctx)
    with Unwind() as unwind:
        events = open_events(plan.log, sink, unwind)
        events.emit(_started(manifest, ctx))
        ending = Ending(ctx.run_id)
        unwind.push(lambda: events.emit(ending.event()))
        with ending.watch():
            metrics = _set_up_metrics(manifest, events, ending, unwind)
            run = _Run(os.fspath(manifest_path), manifest, ctx, plan, metrics, events)
            counters, outputs = run.dispatch()
            ending.counters = counters
    return RunOutcome(counters, outputs, metrics.snapshot() if metrics else None, ending.seconds)


def _check_step(manifest: Manifest, ctx: RunContext) -> None:
    if manifest.step_id != ctx.step_id:
        expected = f"{ctx.step_id!r}, the step of this run"
        raise ManifestError([manifest.problem("step_id", expected, repr(manifest.step_id))])


def _started(manifest: Manifest, ctx: RunContext) -> RunStarted:
    return RunStarted(ctx.run_id, ctx.step_id, manifest.run.type, ctx.user, ctx.integration, ctx.params)


def _set_up_metrics(manifest: Manifest, events: Sink, ending: Ending, unwind: Unwind) -> RunMetrics | None:
    """Metrics that are finalised, with the outcome of that moment, when `unwind` is left."""
    if not manifest.runtime.metrics_enabled:
        return None
    metrics = setup_metrics(events)
    unwind.push(lambda: finalize_metrics(metrics, ending.outcome))
    return metrics


_Result = tuple[Counters, Mapping[str, OutputManifest]]


@dataclass(frozen=True)
class _Run:
    """A run that has started: everything that dispatching it needs."""

    manifest_path: str
    manifest: Manifest
    ctx: RunContext
    plan: StoragePlan
    metrics: RunMetrics | None
    events: Sink

    def dispatch(self) -> _Result:
        """A registered run type wins, else the entry. Raises ManifestError when there is neither."""
        check_manifest(self.manifest)
        run = self.manifest.run
        if run.entry is not None and run.type not in known_patterns():
            return self._entry(run.entry), {}
        return self._pattern(get_pattern_runner(run.type))

    def _pattern(self, runner: PatternRunner) -> _Result:
        with Session(self.plan.outputs, quarantine=self.plan.quarantine) as session:
            job = Job(self.ctx, self.manifest, self.plan, session, self.metrics, self.events)
            counters = self._balanced(_counted(self.manifest.run.type, runner(job)))
            with job.timed("write"):
                outputs = session.commit()
        return counters, outputs

    def _entry(self, entry: str) -> Counters:
        """The entry reads the manifest and writes its own outputs; it may return counters."""
        given = import_entry(self.manifest, entry)(self.ctx, manifest_path=self.manifest_path)
        if given is None:
            return Counters()
        return self._balanced(_counted(entry, given, expected="Counters or None"))

    def _balanced(self, counters: Counters) -> Counters:
        if not counters.balanced:
            raise AccountError(
                f"step {self.ctx.step_id}: {counters.rows_in:,} rows in, but {counters.rows_out:,} out "
                f"+ {counters.filtered:,} filtered + {counters.rejected:,} rejected"
            )
        return counters


def _counted(origin: str, given: object, expected: str = "Counters") -> Counters:
    if not isinstance(given, Counters):
        raise RunError(f"{origin} returned {type(given).__name__}, expected {expected}")
    return given
