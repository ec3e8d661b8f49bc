"""Runs a manifest: `run_from_manifest` is the walk, always in this order.

    load plugins
    load the manifest, merge params, fill placeholders
    check that the manifest is for this step; compile the storage plan
    check the manifest against its run type; see that its outputs may be made
    open the sinks; emit the start of the run
        set up metrics, when the manifest asks for them
        dispatch (see choice.py): a pattern, a mode of a legacy manifest, or an entry that is called
            a pattern: open a session and a workplace; it reads, transforms and writes, all still hidden
            check the account: rows in = rows out + filtered + rejected
            commit: everything appears at once; on any failure the session is aborted
            write the closing account; the checkpoint ends
        finalize the metrics, once, whatever happened
    emit the end of the run, whatever happened; close the sinks
    remove the folders that the run made and left empty

An error of the clean-up never hides an error of the work: it is added to that as a note.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from treadle.domain.result import Counters
from treadle.errors import AccountError, ManifestError, RunError
from treadle.kernel.unwind import Unwind
from treadle.manifest import Manifest, read_manifest
from treadle.processing.account import Account, UnitCount
from treadle.processing.account_file import write_account
from treadle.processing.choice import Entry, Pattern, choose
from treadle.processing.compile import StoragePlan, compile_step_manifest, scratch_specs
from treadle.processing.context import RunContext
from treadle.processing.ending import Ending
from treadle.processing.job import Job, RunOutcome
from treadle.processing.outlook import checkpoint_of
from treadle.processing.plugins import load_plugins
from treadle.processing.prometheus import prometheus_of
from treadle.processing.runners import check_manifest
from treadle.processing.started import StartedRun
from treadle.processing.workplace import Workplace
from treadle.storage import OutputManifest, Session
from treadle.storage.atomic import local_path, no_empty_folders
from treadle.storage.target import check_targets
from treadle.telemetry import (
    RunMetrics,
    RunStarted,
    Sink,
    finalize_metrics,
    fork,
    open_sinks,
    setup_metrics,
)


def run_from_manifest(
    manifest_path: str | os.PathLike[str],
    ctx: RunContext,
    user_params: Mapping[str, object] | None = None,
    *,
    sink: Sink | None = None,
) -> RunOutcome:
    """Run the manifest at `manifest_path`; `user_params` win over those of `ctx`, these over the defaults.

    Events go to `sink`, which stays open, and to the sinks that the section `metrics` of the manifest names.
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
    prometheus = prometheus_of(manifest, ctx.output_root)
    check_manifest(manifest)
    chosen = choose(manifest)
    if isinstance(chosen, Pattern):
        _check_outputs(plan)
    with no_empty_folders(_places(ctx, plan)), Unwind() as unwind:
        events = open_sinks(given=sink, log=plan.log, trace=plan.trace, prometheus=prometheus)
        unwind.push(events.close)
        events.emit(_started(manifest, ctx))
        ending = Ending(ctx.run_id)
        unwind.push(lambda: events.emit(ending.event((*ending.notes, *events.notes()))))
        with ending.watch():
            metrics = _set_up_metrics(manifest, events, ending, unwind)
            into = events if metrics is None else fork(events, metrics)
            run = StartedRun(os.fspath(manifest_path), ctx, manifest, plan, metrics, into)
            done = _entry(run, chosen) if isinstance(chosen, Entry) else _pattern(run, chosen)
            ending.counters, ending.account, ending.notes = done.counters, done.account, done.notes
    return RunOutcome(
        done.counters,
        done.outputs,
        metrics.snapshot() if metrics else None,
        ending.seconds,
        done.units,
        done.account,
        done.first_reasons,
    )


def _check_step(manifest: Manifest, ctx: RunContext) -> None:
    if manifest.step_id != ctx.step_id:
        expected = f"{ctx.step_id!r}, the step of this run"
        raise ManifestError([manifest.problem("step_id", expected, repr(manifest.step_id))])


def _check_outputs(plan: StoragePlan) -> None:
    """Before a sink is opened: it would replace or add to the files that tell of the run that was here."""
    # Beside a checkpoint an output may be what a commit that was cut has left, and only the session can tell.
    if plan.checkpoint is None or not local_path(plan.checkpoint).exists():
        check_targets(plan.outputs)


def _places(ctx: RunContext, plan: StoragePlan) -> Iterator[str]:
    """The folders that a run makes when they are not there."""
    yield ctx.output_root
    files = (
        plan.log,
        plan.trace,
        plan.quarantine,
        plan.checkpoint,
        *(each.path for each in plan.outputs.values()),
    )
    yield from (os.path.dirname(each) for each in files if each is not None)  # noqa: PTH120 - may be a URL


def _started(manifest: Manifest, ctx: RunContext) -> RunStarted:
    return RunStarted(
        ctx.run_id,
        ctx.step_id,
        manifest.run.type,
        ctx.user,
        ctx.integration,
        ctx.params,
        attempt=ctx.attempt,
        labels=ctx.labels,
    )


def _set_up_metrics(manifest: Manifest, events: Sink, ending: Ending, unwind: Unwind) -> RunMetrics | None:
    """Metrics that are finalised, with the outcome of that moment, when `unwind` is left."""
    if not manifest.runtime.metrics_enabled:
        return None
    metrics = setup_metrics(events, interval=manifest.metrics.interval)
    unwind.push(lambda: finalize_metrics(metrics, ending.outcome))
    return metrics


@dataclass(frozen=True)
class _Done:
    counters: Counters
    outputs: Mapping[str, OutputManifest]
    units: tuple[UnitCount, ...] = ()
    account: str | None = None
    notes: tuple[str, ...] = ()
    first_reasons: tuple[str, ...] = ()


def _pattern(run: StartedRun, pattern: Pattern) -> _Done:
    with _session(run, pattern) as session:
        account = Account(run, session)
        with Workplace(run.manifest.parallelism) as workplace:
            job = Job(**vars(run), session=session, account=account, workplace=workplace)
            counters = _balanced(run, _counted(pattern.name, pattern.runner(job)))
        with run.timed("write"):
            outputs = session.commit(conclude=lambda: write_account(run, account, counters))
        notes = tuple(session.notes)
    return _Done(counters, outputs, account.units, run.plan.account, notes, account.first_reasons)


def _session(run: StartedRun, pattern: Pattern) -> Session:
    plan = run.plan
    return Session(
        plan.outputs,
        scratch=scratch_specs(pattern.scratch, run.ctx),
        quarantine=plan.quarantine,
        checkpoint=checkpoint_of(run.manifest, run.ctx, plan, pattern),
    )


def _entry(run: StartedRun, entry: Entry) -> _Done:
    """The entry reads the manifest and writes its own outputs; it may return counters."""
    given = entry.call(run.ctx, manifest_path=run.manifest_path)
    if given is None:
        return _Done(Counters(), {})
    return _Done(_balanced(run, _counted(entry.name, given, expected="Counters or None")), {})


def _balanced(run: StartedRun, counters: Counters) -> Counters:
    if not counters.balanced:
        raise AccountError(
            f"step {run.ctx.step_id}: {counters.rows_in:,} rows in, but {counters.rows_out:,} out "
            f"+ {counters.filtered:,} filtered + {counters.rejected:,} rejected"
        )
    return counters


def _counted(origin: str, given: object, expected: str = "Counters") -> Counters:
    if not isinstance(given, Counters):
        raise RunError(f"{origin} returned {type(given).__name__}, expected {expected}")
    return given
