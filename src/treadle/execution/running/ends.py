"""How the steps of a run ended: counted, told to the reporter, kept for the results."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime

from treadle.artifacts import Artifact, RecordHead, join
from treadle.execution.freshness import Plan
from treadle.execution.graph import StepGraph
from treadle.execution.report import Reporter, RunPlanned, StepEnded
from treadle.execution.results import Results, StepResult, because
from treadle.execution.running.task import Served
from treadle.execution.step_spec import StepSpec
from treadle.kernel import Cached, Done, Failed, Outcome, Skipped


class Ends:
    """The ends so far. With `keep`, of more done steps than that the oldest are counted and forgotten."""

    cancelled = 0
    """How many of the failed ones were asked to stop, and did."""

    def __init__(self, report: Reporter, keep: int | None = None) -> None:
        self._report = report
        self._keep_at_most = keep
        self._ends: dict[str, StepResult] = {}
        self._done: deque[str] = deque()
        self._counts: Counter[type[Outcome]] = Counter()

    def __contains__(self, key: object) -> bool:
        return key in self._ends

    def cached(self, step: StepSpec, head: RecordHead) -> None:
        """The step was done before this run."""
        outcome = Cached(Artifact(join(step.output_path, head.location)))
        self._keep(step, outcome, head, "there is a build of it", 0, 0.0)

    def done(self, step: StepSpec, served: Served, reason: str, attempts: int) -> None:
        """The step is done now."""
        self._keep(step, served.outcome, served.head, reason, attempts, served.seconds)

    def failed(
        self,
        step: StepSpec,
        outcome: Failed,
        attempts: int,
        started: datetime | None,
        seconds: float,
        *,
        cancelled: bool,
    ) -> None:
        """The step failed for good, or was cancelled."""
        self.cancelled += cancelled
        self._put(step, outcome, "", attempts, started, seconds, seconds, cancelled=cancelled)

    def skipped(self, step: StepSpec, outcome: Skipped) -> None:
        """The step never ran."""
        self._put(step, outcome, because(outcome), 0, None, 0.0, 0.0)

    def results(self, order: Iterable[str] = ()) -> Results:
        """What the run gave: first the steps of `order`, then the others as they ended."""
        first = {key: self._ends[key] for key in order if key in self._ends}
        return Results(first | self._ends, self._counts)

    def _keep(
        self,
        step: StepSpec,
        outcome: Done | Cached,
        head: RecordHead,
        reason: str,
        attempts: int,
        seconds: float,
    ) -> None:
        self._put(
            step, outcome, reason, attempts, datetime.fromisoformat(head.started), head.seconds, seconds
        )
        if self._keep_at_most is not None:
            self._done.append(step.id)
            if len(self._done) > self._keep_at_most:
                self._ends.pop(self._done.popleft(), None)

    def _put(
        self,
        step: StepSpec,
        outcome: Outcome,
        reason: str,
        attempts: int,
        started: datetime | None,
        took: float,
        seconds: float,
        *,
        cancelled: bool = False,
    ) -> None:
        key = step.id
        if (before := self._ends.get(key)) is not None:  # of a stream: it vanished, and was built anew
            self._counts[type(before.outcome)] -= 1
        self._ends[key] = StepResult(
            name=step.name,
            outcome=outcome,
            output_path=step.output_path,
            prefix=str(step.output_path_prefix),
            deps=step.dep_ids,
            attempts=attempts,
            started=started,
            seconds=took,
            reason=reason,
        )
        self._counts[type(outcome)] += 1
        self._report(StepEnded(key, step.name, outcome, seconds, cancelled))


def results_there(graph: StepGraph, plan: Plan, report: Reporter) -> Results:
    """The results of a run that runs nothing: those of the steps that are done."""
    report(RunPlanned(len(plan.done), len(plan.reasons)))
    ends = Ends(report)
    for key, head in plan.done.items():
        ends.cached(graph.steps[key], head)
    return ends.results()
