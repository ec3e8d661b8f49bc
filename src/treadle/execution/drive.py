"""Work off the steps that have to run: the loop of the runner, driven by the jobs that end.

One thread runs the loop and has this state for itself; a job that ends puts its key into a queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from treadle.artifacts import RECORD_NAME, Artifact, Record
from treadle.errors import StepError
from treadle.execution.execute import Attempt, attempt
from treadle.execution.freshness import Plan
from treadle.execution.graph import StepGraph
from treadle.execution.report import (
    CodeChanged,
    Reporter,
    RunEnded,
    RunPlanned,
    RunStopping,
    StepEnded,
    StepStarted,
)
from treadle.execution.results import StepResult, missing_record
from treadle.fray import Client, JobHandle, JobRequest, JobStatus, ResourceConfig, stop_requested
from treadle.kernel import Cached, Failed, Frontier, Outcome, Skipped


class Drive:
    """One run: `plan` says what is done, and `forced` what runs in any case.

    At most `max_concurrent` jobs are with the client at once; with `stop_on_failure` none is added
    after a step has failed.
    """

    def __init__(
        self,
        graph: StepGraph,
        plan: Plan,
        forced: Set[str],
        client: Client,
        *,
        max_concurrent: int,
        stop_on_failure: bool,
    ) -> None:
        self._graph = graph
        self._plan = plan
        self._forced = forced
        self._client = client
        self._max_concurrent = max_concurrent
        self._stop_on_failure = stop_on_failure
        needs = {key: [dep for dep in graph.deps[key] if dep in plan.to_run] for key in plan.to_run}
        self._frontier = Frontier(needs, _remaining_path(graph, needs))
        self._builds = {key: record.build for key, record in plan.records.items()}
        self._seen: dict[str, float] = {}
        self._outcomes: dict[str, StepResult] = {}
        self._failed: list[str] = []
        self._jobs: dict[str, JobHandle[Attempt]] = {}
        self._ended: SimpleQueue[str | None] = SimpleQueue()
        self._halted = threading.Event()
        self._report: Reporter

    def run(self, report: Reporter) -> Mapping[str, StepResult]:
        """Run to the end, telling `report`, and give how each step ended (step id -> result).

        Raises:
            StepError: this run is part of a step that was asked to stop, so that steps are left.
        """
        clock = time.perf_counter()
        self._report = report
        self._take_up_plan()
        self._work_off()
        if self._stopping():
            self._stop()
        else:
            self._skip_rest()
        ended = {key: self._outcomes[key] for key in self._graph.order if key in self._outcomes}
        report(RunEnded({key: each.outcome for key, each in ended.items()}, time.perf_counter() - clock))
        if not self._halted.is_set() and (left := len(self._plan.to_run - ended.keys())):
            raise StepError(f"the step that runs these steps was asked to stop; {left} of them did not run")
        return ended

    def halt(self) -> None:
        """From another thread: start nothing new, ask running steps to stop, and come to the end."""
        self._halted.set()
        self._ended.put(None)

    def _stopping(self) -> bool:
        """Whether this run was halted, or is part of a step that was asked to stop."""
        return self._halted.is_set() or stop_requested()

    def _take_up_plan(self) -> None:
        done, to_run = self._plan.records, self._plan.to_run
        self._report(RunPlanned(len(done), len(to_run)))
        for key in self._plan.code_changed:
            self._report(CodeChanged(key, self._graph.steps[key].name))
        for key, record in done.items():
            self._end(key, Cached(Artifact(self._graph.steps[key].output_path)), record=record)

    def _work_off(self) -> None:
        while not self._stopping():
            if (key := self._take()) is not None:
                self._start(key)
            elif not self._jobs:
                return
            elif (ended := self._ended.get()) is not None:
                self._settle(ended)

    def _take(self) -> str | None:
        full = len(self._jobs) >= self._max_concurrent
        return None if full or (self._stop_on_failure and self._failed) else self._frontier.take()

    def _start(self, key: str) -> None:
        step = self._graph.steps[key]
        if (gone := self._missing_dep(key)) is not None:
            self._fail(key, Failed(missing_record(self._graph.steps[gone].output_path)))
            return
        builds = {dep: self._builds[dep] for dep in self._graph.deps[key]}
        body = partial(attempt, step, builds, forced=key in self._forced)
        self._report(StepStarted(key, step.name))
        try:
            job = self._client.submit(JobRequest(key, body, step.resources or ResourceConfig()))
        except Exception as error:  # noqa: BLE001 - a step that cannot be handed over is a failed step
            self._fail(key, Failed(error))
            return
        self._jobs[key] = job
        job.add_done_callback(lambda _: self._ended.put(key))

    def _missing_dep(self, key: str) -> str | None:
        """A dependency that was done and is gone, each looked at once a second at most: edges are many."""
        now = time.monotonic()
        for dep in self._graph.deps[key]:
            if now - self._seen.get(dep, -1.0) > 1:
                if not Path(self._graph.steps[dep].output_path, RECORD_NAME).exists():
                    return dep
                self._seen[dep] = now
        return None

    def _settle(self, key: str) -> None:
        """Take up what a job brought that has ended."""
        try:
            tried = self._jobs.pop(key).result()
        except BaseException as error:  # noqa: BLE001 - the job itself was lost: a failed step
            self._fail(key, Failed(error))
            return
        if tried.record is None:
            self._fail(key, tried.outcome, tried.started, tried.seconds)
            return
        self._builds[key] = tried.record.build
        self._seen[key] = time.monotonic()
        self._frontier.done(key)
        self._end(key, tried.outcome, record=tried.record, seconds=tried.seconds)

    def _fail(
        self, key: str, outcome: Outcome, started: datetime | None = None, seconds: float = 0.0
    ) -> None:
        self._failed.append(key)
        self._frontier.lose(key)
        self._end(key, outcome, started=started, seconds=seconds)

    def _skip_rest(self) -> None:
        """What never ran, last, when all the culprits are known."""
        culprits, failed = self._frontier.culprits(), tuple(self._failed)
        for key in self._graph.order:
            if key in self._plan.to_run and key not in self._outcomes:
                self._end(key, Skipped(culprits.get(key, failed)))

    def _end(
        self,
        key: str,
        outcome: Outcome,
        *,
        record: Record | None = None,
        started: datetime | None = None,
        seconds: float = 0.0,
    ) -> None:
        step, deps = self._graph.steps[key], self._graph.deps[key]
        built, took = (started, seconds) if record is None else (_time(record), record.seconds)
        self._outcomes[key] = StepResult(step.name, outcome, step.output_path, deps, built, took)
        self._report(StepEnded(key, step.name, outcome, seconds))

    def _stop(self) -> None:
        self._report(RunStopping(tuple(self._graph.steps[key].name for key in self._jobs)))
        for job in self._jobs.values():
            job.terminate()
        for key, job in tuple(self._jobs.items()):
            if job.wait() is not JobStatus.STOPPED:  # stopped ones never began: no outcome
                self._settle(key)


def _time(record: Record) -> datetime:
    return datetime.fromisoformat(record.started)


def _remaining_path(graph: StepGraph, needs: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """How many steps the longest path from each step to the end has."""
    depth = dict.fromkeys(needs, 1.0)
    for key in reversed(graph.order):
        for dep in needs.get(key, ()):
            depth[dep] = max(depth[dep], depth[key] + 1)
    return depth
