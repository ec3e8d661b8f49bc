"""The workers of a client that have nothing to do, kept a moment for the next job."""

from __future__ import annotations

import errno
import threading
import time
from collections import OrderedDict

from treadle.errors import ClusterError
from treadle.fray.processes.setting import Setting, WorkerOptions
from treadle.fray.processes.worker_process import WorkerProcess

KEEP_ALIVE_S = 5.0
"""How long an idle worker waits for work, in seconds."""

SPARE = 256
"""How many workers there may be beside those for which there are slots: of jobs that wait, and of actors."""

_SHORT = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
_ADVICE = (
    ": nest jobs less deeply, have fewer workers and actors, or raise the limits of this process "
    "(`ulimit -n`, `ulimit -u`)"
)

_SURE_S = 0.001
"""How long an idle worker is taken to be as it was, in seconds."""

_MORE_S = 1.0
"""How much longer than the grace of a job its worker may take to end, in seconds."""


class Pool:
    """Starts workers, and keeps at most `most` idle ones; a thread ends those that are idle for long."""

    def __init__(self, most: int, options: WorkerOptions) -> None:
        self._most = most
        self._limit = most + SPARE
        self.options = options
        self._begin()
        self._closed = False
        self._left = False

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._idle: OrderedDict[WorkerProcess, float] = OrderedDict()  # the time since when, oldest first
        self._all: set[WorkerProcess] = set()
        self._keeping = False
        self._keeper: threading.Thread | None = None
        self._close_now = threading.Event()

    def take(self, setting: Setting) -> WorkerProcess:
        """A worker of that setting: an idle one, or a new one.

        Raises:
            ClusterError: no process can be started, there are too many, or this process is about to end.
        """
        while (found := self._take_idle(setting)) is not None:
            worker, since = found
            # A look costs as much as a job. What goes wrong in so short a time may do so after the look, too.
            if time.monotonic() - since < _SURE_S or worker.is_fit():
                return worker
            self.discard(worker)
        if self._left:
            raise ClusterError("this process is about to end: it starts no workers any more")
        worker = self._started(setting)
        with self._lock:
            self._all.add(worker)
        return worker

    def _started(self, setting: Setting) -> WorkerProcess:
        there = len(self._all)
        if there >= self._limit:
            raise ClusterError(
                f"no worker can be started: expected at most {self._limit}, which are there, held by actors "
                "and by jobs that wait for others: nest jobs less deeply, or have fewer actors"
            )
        try:
            return WorkerProcess(setting, self.options)
        except OSError as error:
            message = f"no worker can be started beside the {there} that are there: {error}"
            raise ClusterError(message + _ADVICE * (error.errno in _SHORT)) from error

    def give_back(self, worker: WorkerProcess) -> None:
        """It has nothing to do."""
        with self._lock:
            surplus: WorkerProcess | None = worker
            if not self._closed:
                self._idle[worker] = time.monotonic()
                surplus = self._idle.popitem(last=False)[0] if len(self._idle) > self._most else None
            keep = not self._keeping and bool(self._idle)
            self._keeping |= keep
        if keep:
            self._keeper = threading.Thread(target=self._keep, name="treadle-workers", daemon=True)
            self._keeper.start()
        if surplus is not None:
            self.retire(surplus)

    def retire(self, worker: WorkerProcess) -> None:
        """Have it end by itself, and see to it."""
        worker.hang_up()
        self.discard(worker, patience=self.options.grace, group=not worker.had_detached)

    def discard(self, worker: WorkerProcess, *, patience: float = 0.0, group: bool = True) -> str:
        """End it, and say how it has ended; see `WorkerProcess.end`."""
        with self._lock:
            self._all.discard(worker)
        return worker.end(patience=patience, group=group)

    def close(self, *, wait: bool) -> None:
        """Keep no idle workers any more; with `wait`, return when those that were idle have ended."""
        with self._lock:
            self._closed = True
            keeper = self._keeper
        self._close_now.set()
        if wait and keeper is not None:
            keeper.join()

    def leave(self) -> None:
        """This process ends: all workers do, but for those at work for a detached job."""
        with self._lock:
            self._left = True
            workers = [each for each in self._all if not each.detached]
        for worker in workers:
            worker.abandon()
        for worker in workers:
            worker.see_off(self.options.grace + _MORE_S)

    def after_fork(self) -> None:
        """In the child of a fork: all workers are the parent's."""
        for worker in self._all:
            worker.forget()
        self._begin()

    def _take_idle(self, setting: Setting) -> tuple[WorkerProcess, float] | None:
        """The one that was idle for the shortest time, and since when."""
        with self._lock:
            for worker in reversed(self._idle):  # the latest first: the others may end
                if worker.setting == setting:
                    return worker, self._idle.pop(worker)
            return None

    def _keep(self) -> None:
        while (wait := self._next_end()) is not None:
            self._close_now.wait(wait)
            old = self._take_old()
            for worker in old:
                worker.hang_up()
            for worker in old:
                self.discard(worker, patience=self.options.grace, group=not worker.had_detached)

    def _next_end(self) -> float | None:
        """How long until the first idle worker has been so for long; None when there is none."""
        with self._lock:
            if not self._idle:
                self._keeping = False
                return None
            return max(0.0, next(iter(self._idle.values())) + KEEP_ALIVE_S - time.monotonic())

    def _take_old(self) -> list[WorkerProcess]:
        now = time.monotonic()
        with self._lock:
            old = [each for each, since in self._idle.items() if self._closed or now - since >= KEEP_ALIVE_S]
            for each in old:
                del self._idle[each]
            return old
