"""The attempts that are with the client: handed over, timed, and given up when they do not stop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

from treadle.errors import StepTimeoutError, StoppedError, WorkerLostError
from treadle.execution.blame import describe
from treadle.execution.freshness import Why
from treadle.execution.running.agenda import Agenda
from treadle.execution.running.execute import attempt
from treadle.execution.running.ready import NOTHING_SPECIAL, Ready
from treadle.execution.running.sending import attempt_elsewhere, pack, received
from treadle.execution.running.task import Broken, Task, Tried
from treadle.execution.running.unfinished import Unit
from treadle.fray import Client, JobHandle, JobRequest, JobStatus
from treadle.fray.running_job import running_job
from treadle.kernel import Failed

_GRACE = 5.0
_LOOK = 1.0
_WHATEVER_IS_THERE = (Why.FORCED, Why.DEV)

Post = Callable[[Callable[[], object]], object]


class Jobs:
    """The jobs of the run `run`. When one has ended, `post` gets a call that leads to `ended`."""

    def __init__(
        self,
        client: Client,
        run: str,
        ready: Ready,
        agenda: Agenda,
        post: Post,
        ended: Callable[[Unit, Tried], object],
    ) -> None:
        self._client = client
        self._run = run
        self._ready = ready
        self._agenda = agenda
        self._post = post
        self._ended = ended
        self._running: dict[str, tuple[Unit, JobHandle[Any]]] = {}
        self._abandoned: set[JobHandle[Any]] = set()
        self._asked: set[JobHandle[Any]] = set()  # to stop
        self._taken_back: set[JobHandle[Any]] = set()

    def __len__(self) -> int:
        """How many bodies run, also those that nobody waits for any more."""
        return len(self._running) + len(self._abandoned)

    def units(self) -> tuple[Unit, ...]:
        """The steps whose end is waited for."""
        return tuple(unit for unit, _ in self._running.values())

    def start(self, unit: Unit) -> None:
        """Hand over the step's next attempt; what the client raises is passed on."""
        forced = unit.reason.why in _WHATEVER_IS_THERE
        task = Task(unit.step, unit.builds, self._run, unit.attempt, unit.known, forced)
        job = self._client.submit(self._request(task))
        self._running[unit.key] = unit, job
        job.add_done_callback(lambda _: self._post(partial(self._come_back, unit, job)))
        if unit.step.timeout is not None:
            self._time(unit, job, unit.step.timeout)

    def take_back(self) -> None:
        """Those that have not begun need not; the steps have no end then."""
        for _, job in tuple(self._running.values()):
            if job.status() is JobStatus.PENDING:
                self._taken_back.add(job)
                job.terminate()

    def stop(self) -> None:
        """Ask all to stop, and wait until they have; one that had not begun has no end."""
        running = tuple(self._running.values())
        had_begun = [job.status() is JobStatus.RUNNING for _, job in running]
        for _, job in running:
            self._terminate(job)
        ends = [job.wait() for _, job in running]  # all, before anything can break
        for (unit, job), begun, end in zip(running, had_begun, ends, strict=True):
            if begun or end is not JobStatus.STOPPED:
                self._come_back(unit, job)

    def _request(self, task: Task) -> JobRequest[Any]:
        step = task.step
        resources = step.resources or NOTHING_SPECIAL
        if self._client.shares_memory:
            return JobRequest(step.id, partial(attempt, task), resources)
        sent = partial(attempt_elsewhere, step.id, pack(task))
        # It has its claim and commits by itself, so it need not be done again when this process is killed.
        # In a run inside a step, the body of that waits for it, and ends when it cannot ask for more.
        return JobRequest(step.id, sent, resources, detached=running_job() is None)

    def _terminate(self, job: JobHandle[Any]) -> None:
        self._asked.add(job)
        job.terminate()

    def _come_back(self, unit: Unit, job: JobHandle[Any]) -> None:
        self._ready.give(unit.key)
        was_asked = job in self._asked
        self._asked.discard(job)
        if job in self._abandoned:
            self._abandoned.discard(job)
            return
        del self._running[unit.key]
        if job in self._taken_back and job.status() is JobStatus.STOPPED:
            self._taken_back.discard(job)
        else:
            self._ended(unit, _result(job, was_asked=was_asked))

    def _is_running(self, unit: Unit, job: JobHandle[Any]) -> bool:
        return self._running.get(unit.key, (unit, None))[1] is job

    def _time(self, unit: Unit, job: JobHandle[Any], timeout: float) -> None:
        """Its time begins when it is seen to run: clients do not tell when a job begins."""
        if not self._is_running(unit, job):
            return
        if job.status() is JobStatus.PENDING:
            look = min(_LOOK, timeout / 10)
            self._agenda.after(look, partial(self._time, unit, job, timeout))
        else:
            self._agenda.after(timeout, partial(self._time_out, unit, job))

    def _time_out(self, unit: Unit, job: JobHandle[Any]) -> None:
        if not self._is_running(unit, job):
            return
        unit.late = True
        self._terminate(job)
        if self._client.shares_memory:  # elsewhere it is ended in any case
            self._agenda.after(_GRACE, partial(self._abandon, unit, job))

    def _abandon(self, unit: Unit, job: JobHandle[Any]) -> None:
        """A body that does not stop keeps its thread and its lease; the run goes on without it."""
        if self._is_running(unit, job):
            del self._running[unit.key]
            self._abandoned.add(job)
            self._ended(unit, _forced(_never_stopped(unit)))


def _never_stopped(unit: Unit) -> StepTimeoutError:
    return StepTimeoutError(
        f"step {unit.key}: it took longer than its timeout of {unit.step.timeout:g} s, and did "
        f"not stop within {_GRACE:g} s after it was asked; let it look at stop_requested()"
    )


def _result(job: JobHandle[Any], *, was_asked: bool) -> Tried:
    try:
        return received(job.result())
    except WorkerLostError as error:
        return _forced(error)
    except BaseException as error:  # noqa: BLE001 - the job itself was lost, not the step's own error
        if was_asked and isinstance(error, CancelledError | KeyboardInterrupt):
            return _forced(StoppedError("it was asked to stop, did not, and was ended by force"))
        lost = WorkerLostError(f"the place where it ran was lost: {describe(error)}")
        lost.__cause__ = error
        return _forced(lost)


def _forced(error: Exception) -> Broken:
    return Broken(Failed(error), by_force=True, cancelled=isinstance(error, StoppedError))
