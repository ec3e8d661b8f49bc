"""What handles of jobs have in common on threads and in other processes: waiting, the result, callbacks."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, NoReturn, TypeVar, cast

from treadle.fray.protocol import JobHandle, JobStatus
from treadle.fray.running_job import announce_stop, parked
from treadle.fray.waiting import await_end

T = TypeVar("T")


class FollowedJob(Generic[T]):
    """A job that is followed by its `future`: pending, running, cancelled or done, as the job is."""

    __slots__ = ("__weakref__", "_id", "future", "terminated")

    def __init__(self, job_id: str) -> None:
        self._id = job_id
        self.terminated = False
        self.future: Future[Any] = Future()

    def __repr__(self) -> str:
        return f"<job {self._id}: {self.status().value}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a job is followed in the process that submitted it: send or return job.result()")

    @property
    def job_id(self) -> str:
        """Unique within the client."""
        return self._id

    def status(self) -> JobStatus:
        """Where the job stands. Stopped means terminated, and not begun or ended by an error."""
        if self.future.cancelled():
            return JobStatus.STOPPED
        if not self.future.done():
            return JobStatus.RUNNING if self.future.running() else JobStatus.PENDING
        if self._has_succeeded():
            return JobStatus.SUCCEEDED
        return JobStatus.STOPPED if self.terminated else JobStatus.FAILED

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = False) -> JobStatus:
        """Block until the end; see `JobHandle`."""
        if not self.future.done():
            with parked():
                await_end(self.future, timeout)
        if not self.future.done():
            raise TimeoutError(f"job {self._id} has not ended after {timeout} s")
        if raise_on_failure and self.status() is not JobStatus.SUCCEEDED:
            self._outcome()
        return self.status()

    def result(self, timeout: float | None = None) -> T:
        """Block until the end and give what the job gave; see `JobHandle`."""
        self.wait(timeout)
        return self._outcome()

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(self)` at the end, in the thread that takes note of it."""
        # The future must not hold the job that holds it: collecting such rings costs more than the job.
        # Whoever ends the job holds it, so the reference is good by then.
        this = weakref.ref(self)
        self.future.add_done_callback(lambda _: callback(cast("JobHandle[Any]", this())))

    def terminate(self) -> None:
        """Keep it from beginning, or ask it, and the jobs that it has submitted, to stop."""
        if not self.future.done():
            self.terminated = True
            self.future.cancel()
            announce_stop()

    def _has_succeeded(self) -> bool:
        """Of a job that has ended: whether it has returned."""
        raise NotImplementedError

    def _outcome(self) -> T:
        """Of a job that has ended: what it returned; what it raised is raised."""
        raise NotImplementedError
