"""Run an experiment: from handles to results.

1. `lower` makes each handle a `StepSpec`, together with all that it depends on
2. the runner gathers the graph and checks it, before any effect
3. it looks which steps are done: their records say so
4. a `Frontier` gives out the others as they become ready, and the fray client runs them
5. `execute` carries one out: lease, look again, clear, run, record last
6. the results read the values of the steps from the records
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from treadle.errors import ArgumentError
from treadle.execution import Handle, OnFailure, Reporter, Results, StepRunner, StepSpec, lower
from treadle.fray import Client


def run(
    *handles: Handle[Any] | StepSpec,
    prefix: str | os.PathLike[str] | None = None,
    max_concurrent: int = 8,
    fray_client: Client | None = None,
    reporter: Reporter | None = None,
    force: Iterable[str] = (),
    on_failure: OnFailure = "continue",
) -> Results:
    """Run these steps and what they need, in the store `prefix` (see `find_prefix`), except what is done.

    `results[handle.id]` is what the step returned. The other arguments, and the errors raised, are
    those of `StepRunner` and of its `run`.
    """
    specs = [_lowered(place, each, prefix) for place, each in enumerate(handles)]
    runner = StepRunner(max_concurrent, fray_client, reporter=reporter)
    return runner.run(specs, force=force, on_failure=on_failure)


def _lowered(place: int, step: object, prefix: str | os.PathLike[str] | None) -> StepSpec:
    if isinstance(step, StepSpec):
        return step
    if isinstance(step, Handle):
        return lower(step, prefix)
    raise ArgumentError(f"handles[{place}]: expected a handle or a StepSpec, got {step!r}")
