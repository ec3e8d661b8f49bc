"""One job as a thread of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import TextIO, TypeVar, cast

from treadle.fray.capture import LISTENER, Kind, Listener, pass_on
from treadle.fray.checks import check_count
from treadle.fray.current import set_current_client
from treadle.fray.ending import cancelled, stopped_by
from treadle.fray.followed import FollowedJob
from treadle.fray.job_log import JobLog
from treadle.fray.layers import layer_streams, peel_streams
from treadle.fray.protocol import Client
from treadle.fray.running_job import (
    RunningJob,
    asked_to_stop,
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


class ThreadJob(FollowedJob[T]):
    """A job of a `ThreadClient`; see `JobHandle`. Made in the context that it is to run under.

    It is the `Listener` of what its body prints, which goes on to the log of the step that submitted it, if
    there is one, or to where it would have gone; the job that submitted it does not hear it.
    """

    __slots__ = (
        "_client",
        "_context",
        "_ended",
        "_fn",
        "_log",
        "_parent",
        "_slot",
        "outer",
    )

    def __init__(self, job_id: str, fn: Callable[[], T], slots: Slots, client: Client) -> None:
        super().__init__(job_id)
        self._fn = fn
        self._client = client
        self._slot = Slot(slots)
        self._log: JobLog | None = None
        self._ended = False
        self._parent = running_job()
        listener = LISTENER.get()
        self.outer: Listener | None = listener.outer if isinstance(listener, ThreadJob) else listener
        self._context = copy_context()

    @property
    def parent(self) -> RunningJob | None:
        """The nearest job above that may still be asked to stop, or was.

        Others are dropped: a job that submits the next one, and so on, would keep them all.
        """
        parent = self._parent
        while isinstance(parent, ThreadJob) and parent._ended and not parent.terminated:
            parent = self._parent = parent._parent
        return parent

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines of what the body printed; see `JobHandle`."""
        check_count("max_lines", max_lines)
        return [] if self._log is None else self._log.tail(max_lines)

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
            self._ended = True
            self.terminated = asked_to_stop(self)
            self.future.set_exception(stopped_by(self._id, error) if self.terminated else error)
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

    def _has_succeeded(self) -> bool:
        return self.future.exception() is None

    def _outcome(self) -> T:
        try:
            return cast("T", self.future.result())
        except CancelledError:
            if self.future.cancelled():
                raise cancelled(self._id) from None
            raise

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
