"""What runs in a worker: one job at a time in the main thread, while another thread reads messages.

    driver --CALL--> reading thread --> main thread --OUTCOME--> driver

A worker belongs to its driver. When that is gone, the job that runs is interrupted, and the worker ends; a
detached job goes on to its end first, unless it was asked to stop. The terminal's Ctrl-C does not reach a
worker: the driver decides.
"""

from __future__ import annotations

import atexit
import contextvars
import faulthandler
import os
import signal
import socket
import threading
from _signal import (  # type: ignore[import-not-found] # those of `signal` make enums of what they give
    getsignal,
    pthread_sigmask,
)
from types import FrameType

from treadle.fray.parcel import carry_out, pack_error
from treadle.fray.processes.channel import Channel, Data, Kind, Message
from treadle.fray.processes.line import Line
from treadle.fray.processes.start import Start
from treadle.fray.processes.streams import Streams, drain
from treadle.fray.processes.worker_client import WorkerClient
from treadle.fray.processes.worker_job import WorkerJob


class Worker:
    """Carries out the calls that come over the line, until it ends."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._pid = os.getpid()
        self._line = Line(Channel(socket.socket(fileno=start.socket)), start.driver)
        self._client = WorkerClient(self._line, start.client_key)
        self._streams = Streams()
        self._folder = os.getcwd()  # noqa: PTH109 - as text, it is compared after every job
        self._is_child = False
        self._on_sigint = self._interrupt  # one object, to be compared
        self._interruptible = False
        self._detached = False
        self._was_detached = False

    def run(self) -> None:
        """Work until the driver closes the line."""
        atexit.register(self._end_group)  # the first, so it is called last
        signal.signal(signal.SIGINT, self._on_sigint)
        os.register_at_fork(after_in_child=self._become_child)
        threading.Thread(target=self._listen, name="treadle-line", daemon=True).start()
        self._line.send(Kind.READY, 0)
        while (message := self._line.next_call()) is not None:
            self._work(message)
            del message  # nothing of a job is kept until the next one
            if self._line.gone:
                return

    def _work(self, message: Message) -> None:
        if message.kind == Kind.DETACH:
            self._detached = self._was_detached = True
            return
        job = WorkerJob(self._line, message.number)
        if not self._line.begin(job):
            return
        outcome = self._outcome(message.data, job)
        job.end()
        self._streams.flush()
        if self._is_child:  # of a fork in the body, which returned from that
            os._exit(0)
        self._line.here = None
        self._detached = False
        self._line.send(Kind.OUTCOME, message.number, outcome)
        self._tidy()

    def _become_child(self) -> None:
        self._is_child = True
        self._line.cut()

    def _outcome(self, call: Data, job: WorkerJob) -> bytes:
        try:
            self._interruptible = True
            # A context of its own: what the job sets there ends with it.
            outcome = contextvars.copy_context().run(
                carry_out, call, job, self._client, self._start.largest_result
            )
            self._interruptible = False
        except KeyboardInterrupt as error:
            return pack_error(error)
        return outcome

    def _tidy(self) -> None:
        """What the next job relies on, and the way in which it is interrupted; the driver does not wait."""
        self._streams.restore()
        signal.setitimer(signal.ITIMER_REAL, 0)  # the alarm of one job is not for the next
        pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
        if getsignal(signal.SIGINT) is not self._on_sigint:
            signal.signal(signal.SIGINT, self._on_sigint)
        try:
            moved = os.getcwd() != self._folder  # noqa: PTH109 - as above
        except FileNotFoundError:
            moved = True
        if moved and os.path.isdir(self._folder):  # noqa: PTH112 - as above
            os.chdir(self._folder)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        # Once, and only while the body runs: a late one must not hit the sending of the outcome.
        if self._interruptible:
            self._interruptible = False
            raise KeyboardInterrupt

    def _end_group(self) -> None:
        """What the jobs have started ends with this process, which has done all else by now."""
        if os.getpid() == self._pid and self._line.is_cut and not self._was_detached:
            self._streams.restore()
            os.killpg(self._pid, signal.SIGKILL)

    def _listen(self) -> None:
        """In the reading thread. When the driver is gone, the job that runs ends, or is the last."""
        self._line.listen()
        threading.Thread(target=drain, args=(self._start,), daemon=True).start()
        job = self._line.here
        if job is not None and self._detached and not job.terminated:
            return
        if job is not None:
            job.terminated = True
            os.kill(self._pid, signal.SIGINT)
        if job is None or job.wait_for_end(self._start.grace):
            threading.Event().wait(self._start.grace)  # the main thread ends the process, if it can
        os.killpg(self._pid, signal.SIGKILL)


def main(given: str) -> None:
    """Of the process that `WorkerProcess` starts."""
    faulthandler.enable()
    start = Start.parse(given)
    for fd in start.fds:
        os.set_inheritable(fd, False)
    worker = Worker(start)
    if os.getppid() == start.driver:  # looked at when its end can no longer be missed
        worker.run()
