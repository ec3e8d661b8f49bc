"""Run an experiment: from handles to results.

1. `lower` makes each handle a `StepSpec`, together with all that it depends on
2. the runner gathers the graph and checks it, before any effect
3. it looks which steps are done: their records say so
4. a `Frontier` gives out the others as they become ready, and the fray client runs them
5. `execute` carries one out: claim, run, commit
6. the results read the values of the steps from the records
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from treadle.errors import ArgumentError
from treadle.execution import Handle, OnDrift, OnFailure, Reporter, Results, RunPlan, StepRunner, StepSpec
from treadle.execution.handles.versions import Versions
from treadle.execution.lazy import lower
from treadle.execution.report import VersionsUnused, log_event
from treadle.execution.step_checks import check_not_used_up
from treadle.experiment.modules import check_not_loading
from treadle.fray import Client

AnyStep: TypeAlias = Handle[Any] | StepSpec
Prefix: TypeAlias = str | os.PathLike[str] | None


def run(
    *handles: AnyStep | Iterator[AnyStep],
    prefix: Prefix = None,
    max_concurrent: int = 8,
    fray_client: Client | None = None,
    reporter: Reporter | None = None,
    force: Iterable[str] = (),
    select: Iterable[str] = (),
    on_failure: OnFailure = "continue",
    on_drift: OnDrift = "warn",
    versions: Versions | None = None,
) -> Results:
    """Run these steps and what they need, in the store `prefix` (see `find_prefix`), except what is done.

    `results[handle.id]` is what the step returned. One iterator in place of the handles is taken from as
    the run goes on. `versions` are those of the steps that have none of their own. The other arguments, and
    the errors raised, are those of `StepRunner` and of its `run`. While a command loads the experiment it is
    a UsageError: the call belongs under `if __name__ == "__main__":`.
    """
    check_not_loading()
    report = reporter or log_event
    runner = StepRunner(max_concurrent, fray_client, reporter=report)
    steps = lowered(handles, prefix, versions)
    if isinstance(steps, list):
        _tell_unused(versions, report)
    results = runner.run(steps, force=force, select=select, on_failure=on_failure, on_drift=on_drift)
    if not isinstance(steps, list):  # only now is it known which steps came
        _tell_unused(versions, report)
    return results


def plan(
    *handles: AnyStep | Iterator[AnyStep],
    prefix: Prefix = None,
    max_concurrent: int = 8,
    fray_client: Client | None = None,
    reporter: Reporter | None = None,
    force: Iterable[str] = (),
    select: Iterable[str] = (),
    on_drift: OnDrift = "warn",
    versions: Versions | None = None,
    cluster: str | None = None,
) -> RunPlan:
    """What `run` would do with the same arguments, without doing it; an iterator is listed to its end.

    In place of a `fray_client`, `cluster` may name the one that it would run on, which is not started.
    """
    runner = StepRunner(max_concurrent, fray_client)
    steps = list(lowered(handles, prefix, versions))
    _tell_unused(versions, reporter or log_event)
    return runner.plan(steps, force=force, select=select, on_drift=on_drift, cluster=cluster)


def lowered(
    handles: Iterable[AnyStep | Iterator[AnyStep]], prefix: Prefix = None, versions: Versions | None = None
) -> list[StepSpec] | Iterator[StepSpec]:
    """The specs of these steps: a list, or an iterator where the only one of `handles` is an iterator.

    Raises:
        ArgumentError: something is no step, or a generator that is used up; and see `lower`.
    """
    if not isinstance(versions, Versions | None):
        raise ArgumentError(f"versions: expected Versions, such as Versions('dev'), got {versions!r}")
    given = list(handles)
    if len(given) == 1 and isinstance(given[0], Iterator):
        check_not_used_up("handles[0]", given[0])
        return (_lowered(place, each, prefix, versions) for place, each in enumerate(given[0]))
    return [_lowered(place, each, prefix, versions) for place, each in enumerate(given)]


def _lowered(place: int, step: object, prefix: Prefix, versions: Versions | None) -> StepSpec:
    if isinstance(step, StepSpec):
        return step
    if isinstance(step, Handle):
        return lower(step, prefix, versions=versions)
    raise ArgumentError(f"handles[{place}]: expected a handle or a StepSpec, got {step!r}")


def _tell_unused(versions: Versions | None, report: Reporter) -> None:
    if versions is not None and versions.unused:
        report(VersionsUnused(versions.unused))
