"""One job as a thread of this process."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any, Generic, TextIO, TypeVar, cast

from treadle.fray.capture import LISTENER, Kind, Listener, layer_streams, pass_on, peel_streams
from treadle.fray.checks import check_count
from treadle.fray.current_client import set_current_client
from treadle.fray.job_log import JobLog
from treadle.fray.protocol import Client, JobHandle, JobStatus
from treadle.fray.running_job import (
    RunningJob,
    announce_stop,
    asked_to_stop,
    parked,
    running,
    running_job,
)
from treadle.fray.slots import Slot, Slots

T = TypeVar("T")

_making_log = threading.Lock()


def _renew_lock() -> None:
    global _making_log
    _making_log = threading.Lock()


# A thread that holds the lock at a fork is not there in the child, which would wait for ever.
os.register_at_fork(after_in_child=_renew_lock)


class ThreadJob(Generic[T]):
    """A job of a `ThreadClient`; see `JobHandle`. Made in the context that it is to run under.

    It is the `Listener` of what its body prints, which goes on to the log of the step that submitted it, if
    there is one, or to where it would have gone; the job that submitted it does not hear it.
    """

    __slots__ = (
        "__weakref__",
        "_client",
        "_context",
        "_ended",
        "_fn",
        "_id",
        "_log",
        "_parent",
        "_slot",
        "future",
        "outer",
        "terminated",
    )

    def __init__(self, job_id: str, fn: Callable[[], T], slots: Slots, client: Client) -> None:
        self._id = job_id
        self._fn = fn
        self._client = client
        self._slot = Slot(slots)
        self._log: JobLog | None = None
        self._ended = False
        self._parent = running_job()
        self.terminated = False
        listener = LISTENER.get()
        self.outer: Listener | None = listener.outer if isinstance(listener, ThreadJob) else listener
        self._context = copy_context()
        self.future: Future[T] = Future()

    @property
    def job_id(self) -> str:
        """Unique within the client."""
        return self._id

    @property
    def parent(self) -> RunningJob | None:
        """The nearest job above that may still be asked to stop, or was.

        Others are dropped: a job that submits the next one, and so on, would keep them all.
        """
        parent = self._parent
        while isinstance(parent, ThreadJob) and parent._ended and not parent.terminated:
            parent = self._parent = parent._parent
        return parent

    def status(self) -> JobStatus:
        """Where the job stands. Stopped means terminated, and not begun or ended by an error."""
        if self.future.cancelled():
            return JobStatus.STOPPED
        if not self.future.done():
            return JobStatus.RUNNING if self.future.running() else JobStatus.PENDING
        if self.future.exception() is None:
            return JobStatus.SUCCEEDED
        return JobStatus.STOPPED if self.terminated else JobStatus.FAILED

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = False) -> JobStatus:
        """Block until the end; see `JobHandle`."""
        if not self.future.done():
            with parked():
                await_end(self.future, timeout)
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

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines of what the body printed; see `JobHandle`."""
        check_count("max_lines", max_lines)
        return [] if self._log is None else self._log.tail(max_lines)

    def terminate(self) -> None:
        """Keep the job from starting, or ask it, and the jobs it submitted, to stop."""
        if not self.future.done():
            self.terminated = True
            self.future.cancel()
            announce_stop()

    def run(self) -> None:
        """Carry the job out in the calling thread, unless it, or a job above it, was asked to stop."""
        if asked_to_stop(self):
            self.future.cancel()
        if not self.future.set_running_or_notify_cancel():
            return
        context, fn = self._context, self._fn
        del self._context, self._fn  # the handle may be kept for long, what its job was made of need not be
        try:
            result = context.run(self._enter, fn)
        except BaseException as error:  # noqa: BLE001 - kept for whoever asks for the result
            if asked_to_stop(self):
                self.terminated = True
            self._ended = True
            self.future.set_exception(error)
        else:
            self._ended = True
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """End the job, which could not be started."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)

    def parked(self) -> AbstractContextManager[None]:
        """The job's slot is given up for the block."""
        return self._slot.parked()

    @property
    def closed(self) -> bool:
        """Whether its log takes no more; see `Listener`."""
        return self._ended

    def write(self, kind: Kind, piece: str | bytes, sink: TextIO | None) -> None:
        """Keep what the body prints, and pass it on; see `Listener`."""
        self._kept().write(kind, piece)
        pass_on(self.outer, kind, piece, sink)

    def overhear(self, kind: Kind, piece: str) -> None:
        """Keep what the log of a step inside has sent on; see `Listener`."""
        self._kept().write(kind, piece)

    def _kept(self) -> JobLog:
        log = self._log
        if log is None:
            with _making_log:
                log = self._log = self._log or JobLog()
        return log

    def _enter(self, fn: Callable[[], T]) -> T:
        LISTENER.set(self)  # for good: the context is this job's own
        layers = layer_streams()
        try:
            with running(self), set_current_client(self._client):
                return fn()
        finally:
            peel_streams(layers)
            self._slot.end()


def await_end(future: Future[Any], timeout: float | None = None) -> None:
    """Block until the future has ended or the time is up, whatever comes of it."""
    # Not `concurrent.futures.wait`: it does not see a future as ended that was cancelled and never begun.
    try:
        future.exception(timeout)
    except (CancelledError, TimeoutError):
        return
