"""The handle of a job whose outcome arrives as bytes; opened when it is asked for, and only then."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from typing import Any, Generic, TypeVar, cast

from treadle.fray.parcel import open_outcome, returned
from treadle.fray.processes.channel import Data
from treadle.fray.protocol import JobHandle, JobStatus
from treadle.fray.running_job import parked

T = TypeVar("T")

_NOT_OPEN: Any = object()


class PackedJob(Generic[T]):
    """What driver and worker share of a `JobHandle`: waiting, the result, the callbacks."""

    __slots__ = ("__weakref__", "_error", "_id", "_opening", "_outcome", "_value", "future", "terminated")

    def __init__(self, job_id: str) -> None:
        self._id = job_id
        self.terminated = False
        self.future: Future[None] = Future()
        """Pending, running, cancelled or done, as the job is; it holds no result."""
        self._outcome: Data = b""
        self._error: BaseException | None = None
        self._value: Any = _NOT_OPEN
        self._opening = threading.Lock()

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
        if self._error is None and (self._value is not _NOT_OPEN or returned(self._outcome)):
            return JobStatus.SUCCEEDED
        return JobStatus.STOPPED if self.terminated else JobStatus.FAILED

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = False) -> JobStatus:
        """Block until the end; see `JobHandle`."""
        if not self.future.done():
            with parked():
                wait_for_futures([self.future], timeout)
        if not self.future.done():
            raise TimeoutError(f"job {self._id} has not ended after {timeout} s")
        if raise_on_failure and self.status() is not JobStatus.SUCCEEDED:
            self._opened()
        return self.status()

    def result(self, timeout: float | None = None) -> T:
        """Block until the end and give what the job gave; see `JobHandle`."""
        self.wait(timeout)
        return cast("T", self._opened())

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(self)` at the end, in the thread that takes note of it."""
        # The future must not hold the job that holds it: collecting such rings costs more than the job.
        # Whoever ends the job holds it, so the reference is good by then.
        this = weakref.ref(self)
        self.future.add_done_callback(lambda _: callback(cast("JobHandle[Any]", this())))

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines that the job has printed so far; see `JobHandle`."""
        raise NotImplementedError

    def terminate(self) -> None:
        """End the job and those that it has submitted; see `JobHandle`."""
        raise NotImplementedError

    def end(self, outcome: Data) -> None:
        """The job has ended like this; it must be running."""
        self._outcome = outcome
        self.future.set_result(None)

    def fail(self, error: BaseException) -> None:
        """The job has ended by what is no error of its function; it must be running."""
        self._error = error
        self.future.set_result(None)

    def _opened(self) -> Any:
        self.future.result()  # raises when it was cancelled
        with self._opening:
            if self._error is not None:
                raise self._error
            if self._value is _NOT_OPEN:
                self._open()
            return self._value

    def _open(self) -> None:
        try:
            self._value = open_outcome(self._outcome)
        except BaseException as error:
            if not returned(self._outcome):
                self._error = error
            raise
        finally:
            if self._value is not _NOT_OPEN or self._error is not None:
                self._outcome = b""
