"""The job that runs in a worker, as the code inside it sees it, and the handles of its children."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from treadle.fray.processes.channel import Data, Kind
from treadle.fray.processes.line import Line
from treadle.fray.processes.packed_job import PackedJob
from treadle.fray.protocol import JobHandle
from treadle.fray.running_job import RunningJob

T = TypeVar("T")


class WorkerJob:
    """A `RunningJob` whose place, and whose stop flag, are the driver's business."""

    def __init__(self, line: Line, number: int) -> None:
        self._line = line
        self.number = number
        self.terminated = False
        self._resumed: threading.Event | None = None  # these are made when they are needed: few jobs do
        self._ended: threading.Event | None = None
        self._over = False
        self._parking = threading.Lock()
        self._waiting = 0

    @property
    def parent(self) -> RunningJob | None:
        """None: the driver passes a stop on to the jobs below."""
        return None

    def terminate(self) -> None:
        """Ask the job to stop; from any thread."""
        self.terminated = True
        if not self._over:
            self._line.send(Kind.TERMINATE, self.number)

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Give the place up for the block, while at least one thread of the job waits."""
        with self._parking:
            if not self._waiting and not self._over:
                self._line.send(Kind.PARK, self.number)
            self._waiting += 1
        try:
            yield
        finally:
            with self._parking:
                self._waiting -= 1
                if not self._waiting and not self._over:
                    self._resume()

    def end(self) -> None:
        """The body has ended; threads of it that go on have no place."""
        self._over = True
        if self._ended is not None:
            self._ended.set()

    def wait_for_end(self, timeout: float) -> bool:
        """Whether the body has ended within so many seconds; for one thread."""
        self._ended = threading.Event()
        return self._over or self._ended.wait(timeout)

    def place_is_back(self) -> None:
        """The driver has given the place back, or nobody ever will."""
        if self._resumed is not None:
            self._resumed.set()

    def _resume(self) -> None:
        self._resumed = threading.Event()
        self._line.send(Kind.UNPARK, self.number)
        if not self._line.gone:
            self._resumed.wait()


class ChildJob(PackedJob[T]):
    """The handle of a job that was submitted from this worker."""

    __slots__ = ("_line", "number")

    def __init__(self, line: Line, number: int) -> None:
        super().__init__("")
        self._line = line
        self.number = number
        """Of the worker's own counting."""
        line.children[number] = self

    def begun(self, job_id: str) -> None:
        """The driver has taken it."""
        self._id = job_id

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(self)` at the end; see `JobHandle`."""
        # Nobody else may hold the handle, and then its end would not be told.
        self._line.held.add(self)
        self.future.add_done_callback(lambda _: self._line.call_back(partial(callback, self)))
        if self.future.done():
            self._line.held.discard(self)

    def ended(self, outcome: Data) -> None:
        """Take note of the end; see `Child`."""
        self.terminated = bool(outcome[0])
        self.future.set_running_or_notify_cancel()
        self.end(outcome[1:])
        self._line.held.discard(self)

    def lost(self, error: Exception) -> None:
        """Nobody will ever tell how it ended."""
        if not self.future.done():
            self.future.set_running_or_notify_cancel()
            self.fail(error)

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines that the job has printed so far; see `JobHandle`."""
        lines: list[str] = self._line.ask("logs", self.number, max_lines)
        return lines

    def terminate(self) -> None:
        """End the job and those that it has submitted; see `JobHandle`."""
        if not self.future.done():
            self._line.tell("terminate", self.number)

    def __del__(self) -> None:
        self._line.forget(self.number)
