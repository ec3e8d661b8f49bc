"""The reporter of a worker: tells the board of a client what runs here, and hears what the board says.

Reports go by a thread of their own, a moment later, so that a job that takes no time costs next to nothing:
it is not reported at all when it has ended by then and has printed nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import ray

from treadle.fray.ray.last_words import Record
from treadle.fray.ray.output import Output, flush_streams
from treadle.fray.ray.ticket import NAMESPACE, Lot, Order, Start, Welcome

if TYPE_CHECKING:
    from treadle.fray.ray.task_job import TaskJob

LOT_S = 0.02
"""How long a job runs before it is reported, and how long output is gathered, in seconds."""

LOOK_S = 0.2
"""How often the output of a long job is looked at: nothing tells when a child process or C code writes."""

INTERRUPT: Final = getattr(signal, "SIGRTMAX", signal.SIGUSR2)
"""Interrupts the body of a job. Ray blocks SIGINT in its workers, lest Ctrl-C in a terminal ends them."""

LINGER_S = 2.0
"""How long the threads stay when no job runs: while they are there, Ray does not end the worker."""


class Reporter:
    """For the jobs of one client that run in this process, one after the other."""

    def __init__(self, board: str) -> None:
        self.board: Any = ray.get_actor(board, namespace=NAMESPACE)
        self.stops: set[str] = set()
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._running: TaskJob | None = None
        self._reported = False
        self._output: Output | None = None
        self._lots = 0
        self._lasts: list[Lot] = []
        self._record: Record | None = None
        self._sends = self._listens = False
        self._seen_orders = 0
        self._node_id: str = ray.get_runtime_context().get_node_id()
        self._pid = os.getpid()
        if threading.current_thread() is threading.main_thread():
            for each in (INTERRUPT, signal.SIGINT):  # the latter is how Ray itself interrupts a task
                signal.signal(each, self._interrupt)
        _in_thread(self._enroll).join()

    def begin(self, job: TaskJob) -> None:
        """The body of the job begins after this."""
        with self._lock:
            self._running, self._reported, self._lots = job, False, 0
            self._output = Output()
            self._note(self._start(job, self._output))
            self._keep_threads()
            self._wake.notify_all()

    def end(self) -> int:
        """The body has ended: how many lots of output were reported."""
        flush_streams()
        with self._lock:
            if self._running is not None and self._output is not None:
                self._send_output(self._running.job_id, self._output, whole_lines=False)
            self._running = self._output = None
            self._wake.notify_all()
            return self._lots

    def claim(self, job_id: str, lane: str) -> bool:
        """Whether the task of that lane is to carry the job out."""
        answers: list[bool] = []
        _in_thread(lambda: answers.append(ray.get(self.board.claim.remote(job_id, lane)))).join()
        return bool(answers) and answers[0]

    def _enroll(self) -> None:
        self.welcome: Welcome = ray.get(self.board.enroll.remote())
        sys.path.extend(each for each in self.welcome.sys_path if each not in sys.path)

    def _report(self) -> None:
        job, output = self._running, self._output
        if job is None or output is None:
            return
        if not self._reported:
            self._reported = True
            self.board.report_start.remote(self._start(job, output))
        self._send_output(job.job_id, output, whole_lines=True)

    def _start(self, job: TaskJob, output: Output) -> Start:
        return Start(job.job_id, self._pid, self._node_id, output.reached())

    def _note(self, start: Start) -> None:
        if self._record is None and start.output:
            self._record = Record(os.path.dirname(start.output[0][1]), self._pid)  # noqa: PTH120 - often
        if self._record is not None:
            self._record.write(start)

    def _send_output(self, job_id: str, output: Output, *, whole_lines: bool) -> None:
        if pieces := output.read(whole_lines=whole_lines):
            self._lots += 1
            self.board.report_output.remote(Lot(job_id, self._lots, pieces, output.reached()))

    def _keep_threads(self) -> None:
        if not self._sends:
            self._sends = True
            _in_thread(self._send)
        if not self._listens:
            self._listens = True
            _in_thread(self._listen)

    def _send(self) -> None:
        """Reports what runs, until nothing has run for a while."""
        while self._sends:
            begun = self._running
            time.sleep(LOT_S)  # what comes meanwhile goes with it
            with self._lock:
                if self._running is begun:  # a new one may be over as soon
                    self._report()
                if self._running is not None:
                    self._wake.wait(LOOK_S if self._running is begun else 0)
                else:
                    self._sends = self._wake.wait(LINGER_S) or self._running is not None

    def _listen(self) -> None:
        """Hears orders, as long as something may run."""
        while self._listens:
            seen, orders = self._new_orders()
            with self._lock:
                self._seen_orders = seen
                for order in orders:
                    self._obey(order)
                self._listens = self._sends

    def _new_orders(self) -> tuple[int, list[Order]]:
        try:
            return ray.get(self.board.orders.remote(self._seen_orders))  # type: ignore[no-any-return]
        except ray.exceptions.RayError:  # the board is gone for now: nobody orders anything
            time.sleep(LOOK_S)
            return self._seen_orders, []

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        # It may come late, when the job that it was for has ended and another one runs.
        for each in _reporters.values():
            if each._running is not None and each._running.stopped_ones():
                each._running.interrupt()

    def _obey(self, order: Order) -> None:
        self.stops.add(order.job_id)
        if order.interrupt and self._running is not None and self._running.descends_from(order.job_id):
            signal.pthread_kill(threading.main_thread().ident or 0, INTERRUPT)


_reporters: dict[str, Reporter] = {}


def reporter_of(board: str) -> Reporter:
    """The reporter of this process to that board."""
    if (reporter := _reporters.get(board)) is None:
        reporter = _reporters[board] = Reporter(board)
    return reporter


def _in_thread(act: Callable[[], object]) -> threading.Thread:
    # A wait of the main thread for Ray would lend the processor of the task to others.
    thread = threading.Thread(target=act, name="treadle-reporter", daemon=True)
    thread.start()
    return thread
