"""A job in its worker: a Ray task that makes the packed call and gives its packed outcome."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from treadle.fray.ending import cancelled
from treadle.fray.parcel import carry_out, pack_error, returned
from treadle.fray.ray.reporter import Reporter
from treadle.fray.ray.ticket import Outcome, Ticket


class Ancestor:
    """A job that the one here descends from; see `RunningJob`."""

    def __init__(self, line: tuple[str, ...], reporter: Reporter) -> None:
        self.job_id = line[0]
        self._line = line
        self._reporter = reporter

    @property
    def parent(self) -> Ancestor | None:
        """The job that submitted it; None for one of the client."""
        return Ancestor(self._line[1:], self._reporter) if len(self._line) > 1 else None

    @property
    def terminated(self) -> bool:
        """Whether it was asked to stop, as far as is heard here."""
        return self.job_id in self._reporter.stops

    def terminate(self) -> None:
        """Ask it, and what descends from it, to stop."""
        self._reporter.stops.add(self.job_id)
        self._reporter.board.order.remote(self.job_id, False)

    def parked(self) -> AbstractContextManager[None]:
        """Nothing: its place is elsewhere."""
        return nullcontext()


class TaskJob(Ancestor):
    """The job of a task; see `RunningJob`. `lend` makes use of its processor while it waits."""

    def __init__(self, ticket: Ticket, reporter: Reporter) -> None:
        super().__init__((ticket.job_id, *ticket.ancestors), reporter)
        self.ticket = ticket
        self.reporter = reporter
        self.lend: Callable[[], AbstractContextManager[None]] = nullcontext
        self._in_body = False
        self._interrupted = False

    def stopped_ones(self) -> set[str]:
        """Which of this job and those above it were asked to stop, as far as is heard here."""
        return self.reporter.stops.intersection(self._line)

    def descends_from(self, job_id: str) -> bool:
        """Whether it is that job, or descends from it."""
        return job_id in self._line

    def parked(self) -> AbstractContextManager[None]:
        """The job's processor is for those that it has submitted, for the block."""
        return self.lend()

    @property
    def lends_by_waiting(self) -> bool:
        """Whether Ray lends the processor to others when this thread waits for a task."""
        return self.ticket.owns_cpu and threading.current_thread() is threading.main_thread()

    def carry_out(self, call: bytes, client: Any) -> Outcome | bytes:
        """Make the call, unless this job, or one above it, was asked to stop; what came of it."""
        if self.stopped_ones():
            return Outcome(pack_error(cancelled(self.job_id), traced=False), stopped=True)
        self.reporter.begin(self)
        try:
            with _inside(self.ticket.working_dir):
                packed = carry_out(call, self._body(), client, self.reporter.welcome.largest)
        finally:
            self._in_body = False
            lots = self.reporter.end()
        stopped = not returned(packed) and bool(self.stopped_ones())
        return Outcome(packed, lots, stopped) if lots or stopped else packed

    def _body(self) -> TaskJob:
        self._in_body = True
        if self._interrupted:
            raise KeyboardInterrupt
        return self

    def interrupt(self) -> None:
        """In a handler of signals: interrupt the body, and nothing but the body."""
        self._interrupted = True
        if self._in_body:
            raise KeyboardInterrupt


def _inside(folder: str | None) -> AbstractContextManager[None]:
    return _NOWHERE if folder is None else _changed_to(folder)


_NOWHERE = nullcontext()


@contextmanager
def _changed_to(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
