"""The attempts that are with the client: handed over, timed, and given up when they do not stop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from treadle.errors import StepTimeoutError, WorkerLostError
from treadle.execution.blame import describe
from treadle.execution.freshness import Why
from treadle.execution.running.agenda import Agenda
from treadle.execution.running.execute import Broken, Task, Tried, attempt
from treadle.execution.running.ready import Ready
from treadle.execution.running.unfinished import Unit
from treadle.fray import Client, JobHandle, JobRequest, JobStatus, ResourceConfig
from treadle.kernel import Failed

_GRACE = 5.0
_NOTHING_SPECIAL = ResourceConfig()
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
        self._running: dict[str, tuple[Unit, JobHandle[Tried]]] = {}
        self._abandoned: set[JobHandle[Tried]] = set()

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
        resources = unit.step.resources or _NOTHING_SPECIAL
        job = self._client.submit(JobRequest(unit.key, partial(attempt, task), resources))
        self._running[unit.key] = unit, job
        job.add_done_callback(lambda _: self._post(partial(self._come_back, unit, job)))
        if unit.step.timeout is not None:
            self._agenda.after(unit.step.timeout, partial(self._time_out, unit, job))

    def stop(self) -> None:
        """Ask all to stop, and wait until they have; one that had not begun has no end."""
        for _, job in self._running.values():
            job.terminate()
        running = tuple(self._running.values())
        ends = [job.wait() for _, job in running]  # all, before anything can break
        for (unit, job), end in zip(running, ends, strict=True):
            if end is not JobStatus.STOPPED:
                self._come_back(unit, job)

    def _come_back(self, unit: Unit, job: JobHandle[Tried]) -> None:
        self._ready.give(unit.key)
        if job in self._abandoned:
            self._abandoned.discard(job)
        else:
            del self._running[unit.key]
            self._ended(unit, _result(job))

    def _is_running(self, unit: Unit, job: JobHandle[Tried]) -> bool:
        return self._running.get(unit.key, (unit, None))[1] is job

    def _time_out(self, unit: Unit, job: JobHandle[Tried]) -> None:
        if not self._is_running(unit, job):
            return
        if job.status() is JobStatus.PENDING:  # it has not begun, so its time has not either
            self._agenda.after(unit.step.timeout or 0.0, partial(self._time_out, unit, job))
            return
        unit.late = True
        job.terminate()
        self._agenda.after(_GRACE, partial(self._abandon, unit, job))

    def _abandon(self, unit: Unit, job: JobHandle[Tried]) -> None:
        """A body that does not stop keeps its thread and its lease; the run goes on without it."""
        if self._is_running(unit, job):
            del self._running[unit.key]
            self._abandoned.add(job)
            self._ended(unit, Broken(Failed(_never_stopped(unit))))


def _never_stopped(unit: Unit) -> StepTimeoutError:
    return StepTimeoutError(
        f"step {unit.key}: it took longer than its timeout of {unit.step.timeout:g} s, and did "
        f"not stop within {_GRACE:g} s after it was asked; let it look at stop_requested()"
    )


def _result(job: JobHandle[Tried]) -> Tried:
    try:
        return job.result()
    except WorkerLostError as error:
        return Broken(Failed(error))
    except BaseException as error:  # noqa: BLE001 - the job itself was lost, not the step's own error
        lost = WorkerLostError(f"the place where it ran was lost: {describe(error)}")
        lost.__cause__ = error
        return Broken(Failed(lost))
