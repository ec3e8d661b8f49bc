"""One job while a worker carries it out: the driver's side of the conversation."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.fray.processes.channel import Data, Kind, Message
from treadle.fray.processes.errands import Errands
from treadle.fray.processes.place import Place
from treadle.fray.processes.worker_process import WorkerProcess
from treadle.fray.running_job import asked_to_stop

if TYPE_CHECKING:
    from treadle.fray.processes.process_job import ProcessJob


class Lost(NamedTuple):
    """A worker that was lost before its job had ended; `exited`: by its own doing, or by somebody else's.

    It is certain that the job had not `begun` when its call was the only message, and was not read.
    """

    begun: bool
    exited: bool
    unstarted: bool
    """It ended of its own accord before it was up."""


_TIME_TO_EXIT_S = 5.0
"""Between the end of the channel and that of the process, at most; memory is given back meanwhile."""


class Service:
    """Serves the messages, the output and the end of one worker, for one job, in the calling thread."""

    def __init__(self, job: ProcessJob[Any], worker: WorkerProcess, errands: Errands, place: Place) -> None:
        self.job = job
        self.worker = worker
        self.clean = True
        """Whether the worker may be used again: it was never asked to stop."""
        self._errands = errands
        self._place = place
        self._posts: deque[tuple[Kind, int, Data]] = deque()
        self._outcome: Data | None = None
        self._output_is_read = False
        self._lost: Lost | None = None
        self._sent = 0
        self._stage = 0  # of a stop: asked, interrupted, killed
        self._deadline: float | None = None

    def post(self, kind: Kind, number: int, data: Data = b"") -> None:
        """Have a message sent to the worker; from any thread."""
        self._posts.append((kind, number, data))
        self.worker.wake()

    def abandon_children(self) -> None:
        """Nobody waits any more for what the job has submitted: it ends, unless it is detached."""
        self._errands.abandon()

    def serve(self, call: Data) -> Data | Lost:
        """Have the worker carry out a call; what came of it."""
        if self.job.detached:
            self.worker.detached = True
            self._send(Kind.DETACH, self.job.number)
        self._send(Kind.CALL, self.job.number, call)
        self._stop_if_asked()
        while self._outcome is None and self._lost is None:
            for fd in self.worker.poll(self._patience()):
                self._attend(fd)
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._press()
        if not self._output_is_read:
            self._empty_output()
        return self._outcome if self._lost is None else self._lost  # type: ignore[return-value]

    def _attend(self, fd: int) -> None:
        worker = self.worker
        if self._lost is not None:
            return
        if fd == worker.channel.fileno():
            self._hear()
        elif fd == worker.ended:
            self._hear()  # what it said last counts
            if self._outcome is None:
                self._lose(reset=False)
        elif fd in (worker.out, worker.err):
            self._overhear(fd)
        else:
            self._awake()

    def _patience(self) -> float | None:
        return None if self._deadline is None else self._deadline - time.monotonic()

    def _hear(self) -> None:
        channel = self.worker.channel
        try:
            if channel.has_unsent:
                channel.flush()
            while self._outcome is None and (messages := channel.receive()) is not None:
                # Then the outcome was there at the last look, which was at the output, too, and later.
                self._output_is_read = bool(messages) and messages[0].kind == Kind.OUTCOME
                for message in messages:
                    self._take(message)
        except (EOFError, OSError) as error:
            self._lose(reset=isinstance(error, ConnectionError))

    def _take(self, message: Message) -> None:
        kind, number, data = message
        if kind == Kind.OUTCOME:
            self._outcome = data
        elif kind == Kind.READY:
            self.worker.ready = True
        elif kind in (Kind.ASK, Kind.TELL, Kind.FORGET):
            self._run_errand(kind, number, data)
        else:
            self._take_of_job(kind)

    def _take_of_job(self, kind: int) -> None:
        if kind == Kind.PARK:
            self._place.park()
        elif kind == Kind.UNPARK:
            self._resume(self._place.unpark())
        elif kind == Kind.TERMINATE:
            self.job.terminate()

    def _run_errand(self, kind: int, number: int, data: Data) -> None:
        if kind == Kind.ASK:
            self._send(Kind.REPLY, number, self._errands.answer(self, data))
        elif kind == Kind.TELL:
            self._errands.answer(self, data)
        else:
            self._errands.forget(number)

    def _awake(self) -> None:
        self.worker.woken()
        self._stop_if_asked()
        self._resume(self._place.settle())
        while self._posts and self._lost is None:
            self._send(*self._posts.popleft())

    def _resume(self, back: bool) -> None:
        if back:
            self._send(Kind.RESUMED, self.job.number)

    def _send(self, kind: Kind, number: int, data: Data = b"") -> None:
        if self._lost is not None:
            return
        self._sent += 1
        try:
            self.worker.channel.send(kind, number, data)
        except OSError:
            self._lose(reset=True)

    def _stop_if_asked(self) -> None:
        if not self._stage and self._lost is None and asked_to_stop(self.job):
            self.clean = False
            self._stage = 1
            self._deadline = time.monotonic() + self.worker.grace
            self._send(Kind.STOP, self.job.number)

    def _press(self) -> None:
        """The job has not ended in time after it was asked, or interrupted."""
        self._stage += 1
        if self._stage == 2:
            self._deadline = time.monotonic() + self.worker.grace
            self.worker.interrupt()
        else:
            self._deadline = None
            self.worker.kill()

    def _overhear(self, fd: int) -> bool:
        data = self.worker.read(fd)
        if data:
            self.job.hear("stdout" if fd == self.worker.out else "stderr", data)
        return bool(data)

    def _empty_output(self) -> None:
        for fd in self.worker.poll(0):  # what was written before the last message is there by now
            while fd in (self.worker.out, self.worker.err) and self._overhear(fd):
                pass

    def _lose(self, *, reset: bool) -> None:
        if self._outcome is not None or self._lost is not None:
            return
        # It has ended, or it has closed its end of the channel and lives on: nobody can reach it then.
        exited = self.worker.exited(_TIME_TO_EXIT_S)
        unstarted = exited and not self.worker.ready and not self.worker.was_killed()
        self._lost = Lost(begun=not (reset and self._sent == 1), exited=exited, unstarted=unstarted)
        if self._stage or not self.job.detached:
            self.worker.kill()
