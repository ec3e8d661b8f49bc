"""One job in another process, as the driver sees it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from treadle.errors import UsageError
from treadle.fray.capture import LISTENER, Listener, Stream
from treadle.fray.checks import check_count
from treadle.fray.ending import cancelled
from treadle.fray.job_log import JobLog
from treadle.fray.parcel import pack_error
from treadle.fray.processes.channel import Data
from treadle.fray.processes.packed_job import PackedJob
from treadle.fray.processes.relay import Relay
from treadle.fray.processes.setting import Setting
from treadle.fray.protocol import JobStatus
from treadle.fray.running_job import RunningJob, asked_to_stop
from treadle.fray.thread_job import ThreadJob

T = TypeVar("T")


class ProcessJob(PackedJob[T]):
    """A job of a `ProcessClient`; see `JobHandle`. `carry_out` is what runs it, in a thread with a slot."""

    __slots__ = (
        "_carry_out",
        "_log",
        "_parent",
        "_relay",
        "call",
        "detached",
        "losses",
        "number",
        "setting",
    )

    def __init__(
        self,
        number: int,
        name: str,
        call: Data,
        *,
        setting: Setting,
        parent: RunningJob | None,
        carry_out: Callable[[ProcessJob[Any]], None],
        losses: int = 0,
        detached: bool = False,
    ) -> None:
        super().__init__(f"{name}#{number}")
        self.number = number
        self.losses = losses
        self.detached = detached
        self.setting = setting
        self.call = call
        self._parent = parent
        self._carry_out = carry_out
        self._log: JobLog | None = None
        self._relay = Relay(_listener())

    @property
    def parent(self) -> RunningJob | None:
        """The nearest job above that may still be asked to stop, or was; others need not be kept."""
        parent = self._parent
        while isinstance(parent, ProcessJob) and parent.future.done() and not parent.terminated:
            parent = parent._parent
        self._parent = parent
        return parent

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines that the job has printed so far; see `JobHandle`."""
        check_count("max_lines", max_lines)
        return [] if self._log is None else self._log.tail(max_lines)

    def parked(self) -> AbstractContextManager[None]:
        """Of no use here: the job runs in another process, and parks there."""
        raise UsageError(f"job {self._id} runs in another process")

    def run(self) -> None:
        """Carry the job out, in a thread that holds a slot, unless it was asked to stop."""
        if asked_to_stop(self):
            self.future.cancel()
        if self.future.set_running_or_notify_cancel():
            self._carry_out(self)

    def hear(self, stream: Stream, data: bytes) -> None:
        """Keep what the job has printed, and pass it on."""
        if self._log is None:
            self._log = JobLog()
        self._log.write(stream, data)
        self._relay.write(stream, data)

    def end(self, outcome: Data) -> None:
        """The job has ended like this; it must be running."""
        self._close()
        super().end(outcome)

    def fail(self, error: BaseException) -> None:
        """The job has ended by what is no error of its function; it must be running."""
        self._close()
        super().fail(error)

    def refuse(self, error: BaseException) -> None:
        """The job could not be started, unless it has been stopped before."""
        if self.future.set_running_or_notify_cancel():
            self.fail(error)

    def forwarded(self) -> bytes:
        """How it has ended, for a handle in another process: whether it was stopped, and the outcome."""
        return bytes([self.status() is JobStatus.STOPPED]) + self._packed()

    def _packed(self) -> Data:
        if self.future.cancelled():
            return pack_error(cancelled(self._id), traced=False)
        if self._error is not None:
            return pack_error(self._error, traced=False)
        return self._packed_outcome

    def _close(self) -> None:
        self.call = b""  # the handle may be kept for long, what its job was made of need not be
        self._relay.close()
        self.terminated = asked_to_stop(self)


def _listener() -> Listener | None:
    """Who hears what the job prints: the log of the step that submits it, not the job that does."""
    listener = LISTENER.get()
    return listener.outer if isinstance(listener, ThreadJob) else listener
