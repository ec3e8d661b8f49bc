"""A job of a Ray cluster, for whoever has submitted it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import nullcontext
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar, cast

import ray

from treadle.errors import ClusterError
from treadle.fray.checks import check_count
from treadle.fray.ending import cancelled, stopped_by
from treadle.fray.parcel import open_outcome, returned
from treadle.fray.protocol import JobHandle, JobStatus
from treadle.fray.ray.callbacks import reminders
from treadle.fray.ray.task_future import Desk, TaskFuture, changed
from treadle.fray.ray.task_job import TaskJob
from treadle.fray.ray.ticket import Outcome, Start
from treadle.fray.running_job import parked, running_job

T = TypeVar("T")

LOOK_S = 5.0
"""How often a wait looks whether the connection to Ray is gone, which Ray does not tell, in seconds."""

Cancel = Callable[[bool], object]
"""Keeps a task from beginning or, when it is True, kills its worker."""


class RayJob(TaskFuture, Generic[T]):
    """See `JobHandle`. `cancel` does it where `ray.cancel` cannot."""

    __slots__ = ("_began", "_cancel_by", "_opened")

    def __init__(
        self, job_id: str, desk: Desk, lane: str = "", ref: Any = None, cancel: Cancel | None = None
    ) -> None:
        super().__init__(job_id, desk, lane, ref)
        self._cancel_by = cancel
        self._began = False
        self._opened: tuple[Any] | BaseException | None = None

    def status(self) -> JobStatus:
        """Where the job stands; see `JobStatus`."""
        if self.end is None and not self.is_followed:
            self._await(0)
        end = self.end
        if end is None:
            return JobStatus.RUNNING if self._has_begun() else JobStatus.PENDING
        if isinstance(end, CancelledError):
            return JobStatus.STOPPED
        if isinstance(end, Outcome) and returned(end.packed or b""):
            return JobStatus.SUCCEEDED
        return JobStatus.STOPPED if self.terminated else JobStatus.FAILED

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = False) -> JobStatus:
        """Block until the end; see `JobHandle`."""
        self._end_within(timeout)
        if raise_on_failure:
            self._open()
        return self.status()

    def result(self, timeout: float | None = None) -> T:
        """Block until the end and give what the job gave; see `JobHandle`."""
        self._end_within(timeout)
        return cast("T", self._open())

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(self)` at the end, in a thread that is for callbacks only."""
        if self.call_at_end(partial(callback, self)):
            self.follow()
        else:
            callback(self)

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines of what the job printed; see `JobHandle`."""
        check_count("max_lines", max_lines)
        lots = self.end.lots if isinstance(self.end, Outcome) else 0
        lines: list[str] = self.ask("tail", self.job_id, max_lines, lots, otherwise=[])
        return lines

    def terminate(self) -> None:
        """Ask the job to stop, interrupt it when it does not, and kill it when it does not even then."""
        if self.end is not None or self.terminated:
            return
        self.terminated = True
        self.follow()
        if not self.lanes:
            self.finish(cancelled(self.job_id))
            return
        if ray.is_initialized():
            self.desk.board.order.remote(self.job_id, False).future().add_done_callback(self._was_asked)

    def _end_within(self, timeout: float | None) -> None:
        if self.end is None:
            self._await(timeout)
        if self.end is None:
            raise TimeoutError(f"job {self.job_id} has not ended after {timeout} s")
        if isinstance(self.end, Outcome) and self.end.lots:
            self.desk.heard(self.job_id, self.end.lots)

    def _await(self, timeout: float | None) -> None:
        job = running_job()
        lends_by_waiting = isinstance(job, TaskJob) and job.lends_by_waiting
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with nullcontext() if lends_by_waiting else parked():
            while self.end is None:
                left = deadline - time.monotonic()
                self._await_for(min(max(left, 0.0), LOOK_S), lends_by_waiting=lends_by_waiting)
                if left <= 0:
                    return

    def _await_for(self, seconds: float, *, lends_by_waiting: bool) -> None:
        if not ray.is_initialized():  # a call of Ray would start a cluster
            self.finish(ClusterError(f"job {self.job_id}: this process has left the Ray cluster"))
        elif not self.is_followed:
            self.fetch(seconds)
        elif lends_by_waiting:
            self.await_lanes(seconds)
        else:
            self.await_end(seconds)

    def _open(self) -> Any:
        if self._opened is None:
            self._opened = _opened(self.end)
            if self.terminated and isinstance(self._opened, BaseException):
                self._opened = stopped_by(self.job_id, self._opened)
        if isinstance(self._opened, BaseException):
            raise self._opened
        return self._opened[0]

    def _has_begun(self) -> bool:
        self._began = self._began or self.ask("where", self.job_id, otherwise=None) is not None
        return self._began

    def _cancel(self, *, force: bool) -> None:
        with changed:
            refs = list(self.lanes.values())
        if not ray.is_initialized():
            return
        if self._cancel_by is not None:
            self._cancel_by(force)
            return
        for ref in refs:
            ray.cancel(ref, force=force)

    def _was_asked(self, answer: Future[Start | None]) -> None:
        """In a thread of Ray, which must go on."""
        if answer.exception() is not None or answer.result() is None:  # it has not begun
            self._cancel(force=False)
        reminders.put(self._interrupt, delay=self.desk.grace)

    def _interrupt(self) -> None:
        if self.end is None and ray.is_initialized():
            self.desk.board.order.remote(self.job_id, True)
            reminders.put(self._kill, delay=self.desk.grace)

    def _kill(self) -> None:
        if self.end is None:
            self._cancel(force=True)

    def __del__(self) -> None:
        if self.end is None and not self.is_followed and ray.is_initialized():
            for ref in self.lanes.values():
                self.desk.adopt(ref.future())

    def __reduce__(self) -> NoReturn:
        raise TypeError("a job is followed in the process that submitted it: send or return job.result()")

    def __repr__(self) -> str:
        return f"<job {self.job_id}: {self.status().value}>"


def _opened(end: Outcome | BaseException | None) -> tuple[Any] | BaseException:
    if not isinstance(end, Outcome):
        return end or CancelledError()
    try:
        return (open_outcome(end.packed or b""),)
    except BaseException as error:  # noqa: BLE001 - raised each time that the result is asked for
        return error
