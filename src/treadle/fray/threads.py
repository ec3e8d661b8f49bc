"""Jobs as threads of this process.

At most `max_workers` jobs run at once. A job that waits for another one gives its slot up for that
time, so a job may submit children and wait for them with a single worker. A thread that has no
work ends after a second, so an idle client holds none.

Threads cannot be killed: `terminate` keeps a pending job from starting and asks a running one,
which sees it in `stop_requested()`. The threads are daemons: a job that nobody waits for ends with
the process.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, copy_context
from itertools import count
from typing import Any, Generic, Self, TypeVar, cast

from treadle.errors import ArgumentError
from treadle.fray.checks import check_count
from treadle.fray.current_client import set_current_client
from treadle.fray.protocol import Client, JobHandle, JobRequest, JobStatus
from treadle.fray.resources import ResourceConfig, machine_resources
from treadle.fray.slots import Slot, Slots

T = TypeVar("T")


class ThreadJob(Generic[T]):
    """A job of a `ThreadClient`; see `JobHandle`. Made in the context that it is to run under."""

    __slots__ = ("__weakref__", "_client", "_context", "_fn", "_id", "_parent", "_slot", "_stop", "future")

    def __init__(self, job_id: str, request: JobRequest[T], slots: Slots, client: Client) -> None:
        self._id = job_id
        self._fn: Callable[[], T] = request.fn
        self._client = client
        self._slot = Slot(slots)
        self._stop = False
        self._parent = _JOB.get()
        self._context = copy_context()
        self.future: Future[T] = Future()

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
        if self.future.exception() is None:
            return JobStatus.SUCCEEDED
        return JobStatus.STOPPED if self._stop else JobStatus.FAILED

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = False) -> JobStatus:
        """Block until the end; see `JobHandle`."""
        if not self.future.done():
            with parked():
                wait_for_futures([self.future], timeout)
        if not self.future.done():
            raise TimeoutError(f"job {self._id} has not ended after {timeout} s")
        if raise_on_failure:
            self.future.result()
        return self.status()

    def result(self, timeout: float | None = None) -> T:
        """Block until the end and give what the job gave; see `JobHandle`."""
        self.wait(timeout)
        return self.future.result()

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(self)` at the end, in the thread of the job."""
        # The future must not hold the job that holds it: collecting such rings costs more than the job.
        # Whoever ends the job holds it, so the reference is good by then.
        this = weakref.ref(self)
        self.future.add_done_callback(lambda _: callback(cast("ThreadJob[T]", this())))

    def terminate(self) -> None:
        """Keep the job from starting, or ask it, and the jobs it submitted, to stop."""
        if not self.future.done():
            self._stop = True
            self.future.cancel()

    def run(self) -> None:
        """Carry the job out in the calling thread, unless it, or a job above it, was asked to stop."""
        if self.asked_to_stop():
            self.future.cancel()
        if not self.future.set_running_or_notify_cancel():
            return
        context, fn = self._context, self._fn
        del self._context, self._fn  # the handle may be kept for long, what its job was made of need not be
        try:
            result = context.run(self._enter, fn)
        except BaseException as error:  # noqa: BLE001 - kept for whoever asks for the result
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def asked_to_stop(self) -> bool:
        """Whether this job, or one that it descends from, was terminated."""
        job: ThreadJob[Any] | None = self
        while job is not None and not job._stop:
            job = job._parent
        return job is not None

    def parked(self) -> AbstractContextManager[None]:
        """The job's slot is given up for the block."""
        return self._slot.parked()

    def _enter(self, fn: Callable[[], T]) -> T:
        _JOB.set(self)
        try:
            with set_current_client(self._client):
                return fn()
        finally:
            self._slot.end()


_JOB: ContextVar[ThreadJob[Any] | None] = ContextVar("treadle job", default=None)


def stop_requested() -> bool:
    """Whether the job that runs here was asked to stop; False outside a job."""
    job = _JOB.get()
    return job is not None and job.asked_to_stop()


def stopper() -> Callable[[], None]:
    """What asks the job that runs here to stop, from any thread, at any time; does nothing outside a job."""
    job = _JOB.get()
    return _nothing if job is None else job.terminate


def _nothing() -> None:
    pass


def parked() -> AbstractContextManager[None]:
    """While the block waits for other jobs, the job that runs here gives its slot to them."""
    job = _JOB.get()
    return nullcontext() if job is None else job.parked()


class ThreadClient:
    """Runs at most `max_workers` jobs at once (default: one for each CPU).

    A job takes one slot, whatever resources it asks for; `resources` is only what `resources()` tells,
    what the machine has by default. `known_as` is the client that jobs see as the current one, this one
    by default.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        resources: ResourceConfig | None = None,
        known_as: Client | None = None,
    ) -> None:
        workers = (os.cpu_count() or 1) if max_workers is None else check_count("max_workers", max_workers)
        self._resources = resources
        self._face: Client = known_as or self
        self._slots = Slots(workers)
        self._ids = count(1)
        self._unfinished: set[Future[Any]] = set()
        self._open = True

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`.

        Raises:
            ArgumentError: the client was shut down.
        """
        if not self._open:
            raise ArgumentError(f"job {request.name!r}: the client was shut down and takes no more jobs")
        job = ThreadJob(f"{request.name}#{next(self._ids)}", request, self._slots, self._face)
        self._slots.start(job.run)
        self._unfinished.add(job.future)
        job.future.add_done_callback(self._unfinished.discard)
        return job

    def resources(self) -> ResourceConfig:
        """What there is in all; see `Client`."""
        if self._resources is None:
            self._resources = machine_resources()
        return self._resources

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; with `wait`, return when those taken have ended."""
        self._open = False
        self._slots.close()
        if wait:
            with parked():
                wait_for_futures(tuple(self._unfinished))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
