"""Jobs as threads of this process.

At most `max_workers` jobs run at once. A job that waits for another one gives its slot up for that
time, so a job may submit children and wait for them with a single worker. A thread lives as long
as there is work for it, so an idle client holds none.

Threads cannot be killed: `terminate` keeps a pending job from starting and asks a running one,
which sees it in `stop_requested()`. The threads are daemons: a job that nobody waits for ends with
the process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from itertools import count
from typing import Any, Generic, Self, TypeVar

from treadle.errors import ArgumentError
from treadle.fray.current_client import set_current_client
from treadle.fray.protocol import Client, JobHandle, JobRequest, JobStatus
from treadle.fray.slots import Slot, Slots
from treadle.kernel import carry

T = TypeVar("T")


class ThreadJob(Generic[T]):
    """A job of a `ThreadClient`; see `JobHandle`. Made in the context that it is to run under."""

    def __init__(self, job_id: str, request: JobRequest[T], slots: Slots) -> None:
        self._id = job_id
        self._slot = Slot(slots)
        self._future: Future[T] = Future()
        self._stop = threading.Event()
        self._parent = _JOB.get()
        self._body = carry(lambda: self._enter(request.fn))

    @property
    def job_id(self) -> str:
        """Unique within the client."""
        return self._id

    def status(self) -> JobStatus:
        """Where the job stands. Stopped means terminated, and not begun or ended by an error."""
        if self._future.cancelled():
            return JobStatus.STOPPED
        if not self._future.done():
            return JobStatus.RUNNING if self._future.running() else JobStatus.PENDING
        if self._future.exception() is None:
            return JobStatus.SUCCEEDED
        return JobStatus.STOPPED if self._stop.is_set() else JobStatus.FAILED

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = False) -> JobStatus:
        """Block until the end; see `JobHandle`."""
        if not self._future.done():
            with parked():
                wait_for_futures([self._future], timeout)
        if not self._future.done():
            raise TimeoutError(f"job {self._id} has not ended after {timeout} s")
        if raise_on_failure:
            self._future.result()
        return self.status()

    def result(self, timeout: float | None = None) -> T:
        """Block until the end and give what the job gave; see `JobHandle`."""
        self.wait(timeout)
        return self._future.result()

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(self)` at the end, in the thread of the job."""
        self._future.add_done_callback(lambda _: callback(self))

    def terminate(self) -> None:
        """Keep the job from starting, or ask it, and the jobs it submitted, to stop."""
        self._stop.set()
        self._future.cancel()

    def run(self) -> None:
        """Carry the job out in the calling thread, unless it, or a job above it, was asked to stop."""
        if self.asked_to_stop():
            self._future.cancel()
        if not self._future.set_running_or_notify_cancel():
            return
        try:
            result = self._body()
        except BaseException as error:  # noqa: BLE001 - kept for whoever asks for the result
            self._future.set_exception(error)
        else:
            self._future.set_result(result)

    def asked_to_stop(self) -> bool:
        """Whether this job, or one that it descends from, was terminated."""
        return self._stop.is_set() or (self._parent is not None and self._parent.asked_to_stop())

    def parked(self) -> AbstractContextManager[None]:
        """The job's slot is given up for the block."""
        return self._slot.parked()

    def _enter(self, fn: Callable[[], T]) -> T:
        _JOB.set(self)
        try:
            return fn()
        finally:
            self._slot.end()


_JOB: ContextVar[ThreadJob[Any] | None] = ContextVar("treadle job", default=None)


def stop_requested() -> bool:
    """Whether the job that runs here was asked to stop; False outside a job."""
    job = _JOB.get()
    return job is not None and job.asked_to_stop()


def parked() -> AbstractContextManager[None]:
    """While the block waits for other jobs, the job that runs here gives its slot to them."""
    job = _JOB.get()
    return nullcontext() if job is None else job.parked()


class ThreadClient:
    """Runs at most `max_workers` jobs at once (default: one for each CPU).

    A job takes one slot, whatever `resources` it asks for. `known_as` is the client that jobs see as
    the current one, this one by default.
    """

    def __init__(self, max_workers: int | None = None, *, known_as: Client | None = None) -> None:
        workers = (os.cpu_count() or 1) if max_workers is None else max_workers
        if type(workers) is not int or workers < 1:
            raise ArgumentError(f"max_workers: expected a whole number of at least 1, got {workers!r}")
        self._face: Client = known_as or self
        self._slots = Slots(workers)
        self._ids = count(1)
        self._unfinished: dict[str, JobHandle[Any]] = {}
        self._open = True

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`.

        Raises:
            ArgumentError: the client was shut down.
        """
        if not self._open:
            raise ArgumentError(f"job {request.name!r}: the client was shut down and takes no more jobs")
        with set_current_client(self._face):
            job = ThreadJob(f"{request.name}#{next(self._ids)}", request, self._slots)
        self._slots.start(job.run)
        self._unfinished[job.job_id] = job
        job.add_done_callback(lambda ended: self._unfinished.pop(ended.job_id))
        return job

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; with `wait`, return when those taken have ended."""
        self._open = False
        for job in tuple(self._unfinished.values()) if wait else ():
            job.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
