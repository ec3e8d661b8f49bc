"""Work off the steps that have to run: the loop of the runner, driven by what comes into its inbox.

One thread runs the loop and has this state for itself. Whatever happens elsewhere, a job that ends, a part
of the steps that arrives, a wish to stop, puts a call into the inbox. Between two calls the loop starts what
may start. Nothing is asked again and again, except for a lease of another process, which tells nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from queue import Empty, SimpleQueue

from treadle.artifacts import missing_record
from treadle.errors import (
    ArtifactError,
    DependencyRebuiltError,
    StepError,
    StepTimeoutError,
)
from treadle.execution.blame import describe
from treadle.execution.freshness import OnDrift, Plan
from treadle.execution.graph import StepGraph
from treadle.execution.report import (
    RunEnded,
    RunStopping,
    StepRetrying,
    StepStarted,
    StepWaiting,
)
from treadle.execution.results import KEPT, Results, because
from treadle.execution.retry import NEVER
from treadle.execution.running.agenda import Agenda
from treadle.execution.running.ends import Ends
from treadle.execution.running.feed import Feed
from treadle.execution.running.inside import begin_wait, bodies_around, end_wait
from treadle.execution.running.intake import Intake
from treadle.execution.running.jobs import Jobs
from treadle.execution.running.journal import Journal
from treadle.execution.running.presence import Presence
from treadle.execution.running.ready import Ready
from treadle.execution.running.task import Broken, Served, Tried
from treadle.execution.running.unfinished import Unfinished, Unit
from treadle.execution.running.verdict import Again, GiveUp, judge
from treadle.execution.running.waits import Waits
from treadle.execution.running.watch import Outbox
from treadle.execution.step_spec import StepSpec
from treadle.fray import Client
from treadle.fray.running_job import asked_to_stop, running_job
from treadle.kernel import Failed, Skipped, add_note
from treadle.storage.ledger import AttemptOutcome, Held, Owner

_FIRST_LOOK = 0.02
_LONGEST_WAIT = 1.0


@dataclass(frozen=True)
class RunOptions:
    """How a run goes: its id, its bounds, and what it does about failure and drift."""

    run: str
    at_once: int
    stop_on_failure: bool
    on_drift: OnDrift


class Drive:
    """One run on `client`. At most `options.at_once` bodies run at the same time."""

    def __init__(self, client: Client, options: RunOptions) -> None:
        self._client = client
        self._options = options
        self._inbox: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._units = Unfinished()
        self._ready = Ready(client.resources())
        self._agenda = Agenda()
        self._presence = Presence()
        self._journal = Journal(options.run)
        self._jobs = Jobs(client, options.run, self._ready, self._agenda, self._post, self._settle)
        self._failed: list[str] = []
        self._has_left = False  # something, by a process that died
        self._later = 0  # steps that wait for a lease or for their next attempt
        self._halted = threading.Event()
        self._broken: BaseException | None = None
        self._feed: Feed | None = None
        self._order: tuple[str, ...] = ()
        self._waits = None if client.shares_memory else Waits(options.run)
        self._report: Outbox
        self._ends: Ends
        self._intake: Intake

    def begin(self, graph: StepGraph, plan: Plan) -> None:
        """Take up all steps before the run.

        Raises:
            ArgumentError: one asks for more than there is.
        """
        self._ready.check(graph.steps[key] for key in plan.reasons)
        self._order = graph.order
        self._post(lambda: self._intake.admit(graph, plan))

    def begin_stream(self, steps: Iterator[StepSpec]) -> None:
        """Take up steps as they come."""
        self._feed = Feed(steps, lambda part: self._post(lambda: self._intake.take(part)))
        self._post(lambda: self._intake.ask())

    def run(self, report: Outbox) -> Results:
        """Run to the end, telling `report`, and give how each step ended.

        Raises:
            StepError: this run is part of a step that was asked to stop, so that steps are left.
            BaseException: what a stream of steps raised, what is wrong with a step in it, or what broke
                the loop; running steps were asked to stop and have ended.
        """
        clock = time.perf_counter()
        self._report = report
        self._ends = Ends(report, KEPT if self._feed is not None else None)
        self._intake = self._opened()
        self._guarded(self._work_off)
        self._guarded(self._stop if self._stopping() else self._skip_rest)
        results = self._ends.results(self._order)
        self._guarded(partial(self._journal.end, results.counts, self._ends.cancelled, sweep=self._has_left))
        report(RunEnded(results.counts, time.perf_counter() - clock, self._ends.cancelled))
        if self._broken is not None:
            raise self._broken
        if not self._halted.is_set() and (left := sum(u.key not in self._ends for u in self._units.units())):
            raise StepError(f"the step that runs these steps was asked to stop; {left} of them did not run")
        return results

    def _opened(self) -> Intake:
        return Intake(
            self._units,
            self._ready,
            self._journal,
            self._presence,
            self._ends,
            self._report,
            on_drift=self._options.on_drift,
            at_once=self._options.at_once,
            sends=not self._client.shares_memory,
            feed=self._feed,
            broke=self._break,
        )

    def halt(self) -> None:
        """From another thread: start nothing new, ask running steps to stop, and come to the end."""
        self._halted.set()
        self._post(lambda: None)

    # The loop

    def _guarded(self, call: Callable[[], object]) -> None:
        """Call it; the first thing that broke is raised at the end, when what runs has been stopped."""
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised by `run`
            if self._broken is None:
                self._broken = error
            else:
                add_note(self._broken, f"and while the run was stopped because of it: {describe(error)}")

    def _break(self, error: BaseException) -> None:
        """What runs is stopped, and then the error is raised by `run`."""
        self._broken = error

    def _post(self, call: Callable[[], object]) -> None:
        """From any thread: let the loop make this call."""
        self._inbox.put(call)

    def _stopping(self) -> bool:
        """Whether this run was halted, or is part of a step that was asked to stop."""
        return self._halted.is_set() or self._broken is not None or asked_to_stop(running_job())

    def _work_off(self) -> None:
        while not self._stopping():
            if (key := self._next()) is not None:
                self._start(self._units[key])
            elif self._idle():
                return
            else:
                if self._inbox.empty():
                    self._report.send()
                with suppress(Empty):
                    self._inbox.get(timeout=self._agenda.seconds_left())()
                self._agenda.call_due()

    def _idle(self) -> bool:
        waits = self._jobs.units() or self._later or self._intake.is_open or not self._inbox.empty()
        return not waits and not self._blocked()

    def _blocked(self) -> bool:
        """Whether steps could run if a body that did not stop gave its place to them."""
        return bool(len(self._jobs) and len(self._ready.frontier) and not self._is_over())

    def _is_over(self) -> bool:
        """Whether nothing new is to start, because a step failed."""
        return self._options.stop_on_failure and bool(self._failed)

    def _next(self) -> str | None:
        full = len(self._jobs) >= self._options.at_once
        return None if full or self._is_over() else self._ready.next()

    # Steps run

    def _start(self, unit: Unit) -> None:
        if (gone := self._presence.gone(unit.builds)) is not None:
            self._ready.give(unit.key)
            self._fail(unit, missing_record(gone))
            return
        end_wait(unit.step)
        if unit.looks == 0:
            self._report(StepStarted(unit.key, unit.step.name, unit.attempt))
        try:
            self._jobs.start(unit)
        except Exception as error:  # noqa: BLE001 - a step that cannot be handed over is a failed step
            self._ready.give(unit.key)
            self._fail(unit, error)

    def _settle(self, unit: Unit, tried: Tried) -> None:
        """Take up what an attempt brought that has ended."""
        by_force = isinstance(tried, Broken) and tried.by_force
        self._has_left |= by_force
        match judge(unit, tried):
            case Served() as served:
                self._finish(unit, served)
            case Held(owner=owner):
                self._wait(unit, owner)
            case Again() as again if not self._stopping():
                if by_force or isinstance(again.error, StepTimeoutError):
                    self._note(unit, "lost" if again.lost else "failed", again.error, by_force=by_force)
                self._try_again(unit, again)
            case Again(error=error) | GiveUp(error=error) as end:
                cancelled = isinstance(tried, Broken) and tried.cancelled
                self._fail(unit, error, end.started, end.seconds, by_force=by_force, cancelled=cancelled)

    def _finish(self, unit: Unit, served: Served) -> None:
        self._end_wait(unit)
        self._units.done(unit.key, served.head)
        self._ready.done(unit.key)
        self._presence.saw(unit.step, served.head)
        self._ends.done(unit.step, served, str(unit.reason), unit.attempt)
        self._intake.ask()

    def _wait(self, unit: Unit, owner: Owner) -> None:
        if unit.looks == 0:
            self._report(StepWaiting(unit.key, unit.step.name, owner))
        try:
            begin_wait(unit.step)
            if self._waits is not None:
                self._waits.begin(bodies_around(), unit.step)
        except (StepError, ArtifactError) as error:
            self._fail(unit, error)
            return
        delay = min(_FIRST_LOOK * 2**unit.looks, _LONGEST_WAIT)
        unit.looks += 1
        self._start_later(unit, delay)

    def _end_wait(self, unit: Unit) -> None:
        end_wait(unit.step)
        if self._waits is not None:
            self._waits.end(unit.step)

    def _try_again(self, unit: Unit, again: Again) -> None:
        unit.looks = 0
        unit.late = False
        if again.lost:
            unit.losses += 1
        else:
            unit.attempt += 1
        if isinstance(again.error, DependencyRebuiltError):
            unit.builds.update(again.error.builds)
            self._presence.forget(unit.builds)
        loss, losses = (unit.losses, (unit.step.retry or NEVER).losses) if again.lost else (0, 0)
        told = (unit.key, unit.step.name, unit.attempt, again.delay, again.error, loss, losses)
        self._report(StepRetrying(*told))
        self._start_later(unit, again.delay)

    def _start_later(self, unit: Unit, delay: float) -> None:
        self._later += 1
        self._agenda.after(delay, partial(self._start_now, unit))

    def _start_now(self, unit: Unit) -> None:
        self._later -= 1
        self._ready.again(unit.key)

    def _fail(
        self,
        unit: Unit,
        error: BaseException,
        started: datetime | None = None,
        seconds: float = 0.0,
        *,
        by_force: bool = False,
        cancelled: bool = False,
    ) -> None:
        self._end_wait(unit)
        self._failed.append(unit.key)
        if self._is_over():
            self._intake.stop()
            self._jobs.take_back()
        self._ready.frontier.lose(unit.key)
        cancelled = cancelled and not isinstance(error, StepTimeoutError)
        if started is None or isinstance(error, StepTimeoutError):  # else the attempt itself has noted it
            outcome: AttemptOutcome = "cancelled" if cancelled else "failed"
            seconds = max(seconds, self._note(unit, outcome, error, by_force=by_force))
        self._ends.failed(unit.step, Failed(error), unit.attempt, started, seconds, cancelled=cancelled)

    def _note(self, unit: Unit, outcome: AttemptOutcome, error: BaseException, *, by_force: bool) -> float:
        """Note what the attempt itself could not; how many seconds it took, as far as that is known."""
        if by_force:
            return self._journal.note_forced(unit, outcome, describe(error))
        self._journal.note([unit], outcome, [describe(error)])
        return 0.0

    # The end

    def _skip_rest(self) -> None:
        """What never ran, last, when all the culprits are known."""
        culprits, failed = self._ready.frontier.culprits(), tuple(self._failed)
        left = [unit for unit in self._units.units() if unit.key not in self._ends]
        skipped = [Skipped(culprits.get(unit.key, failed)) for unit in left]
        self._journal.note(left, "skipped", map(because, skipped))
        for unit, outcome in zip(left, skipped, strict=True):
            self._ends.skipped(unit.step, outcome)

    def _stop(self) -> None:
        self._intake.stop()
        self._report(RunStopping(tuple(unit.step.name for unit in self._jobs.units())))
        self._report.send()
        self._jobs.stop()
        left = [unit for unit in self._units.units() if unit.key not in self._ends]
        for unit in left:
            self._end_wait(unit)
        self._journal.note(left, "cancelled", ["the run was stopped before it began"] * len(left))
