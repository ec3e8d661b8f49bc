"""The job that runs here: whether it was asked to stop, and how it makes room while it waits."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Protocol, Self
from weakref import ref

from treadle.termination import told_to_end


class RunningJob(Protocol):
    """What code inside a job may ask of its backend."""

    @property
    def parent(self) -> RunningJob | None:
        """The job that submitted it, where that is known here."""
        ...

    @property
    def terminated(self) -> bool:
        """Whether this very job was asked to stop."""
        ...

    def terminate(self) -> None:
        """Ask the job to stop; from any thread."""
        ...

    def parked(self) -> AbstractContextManager[None]:
        """The job's place is given up to others for the block."""
        ...


def asked_to_stop(job: RunningJob | None) -> bool:
    """Whether the job, or one that it descends from, was terminated."""
    while job is not None and not job.terminated:  # no recursion: depth is no limit
        job = job.parent
    return job is not None


class StopWatcher(Protocol):
    """Has to act when a job is asked to stop, since nobody looks where its own jobs run."""

    def pass_stop_on(self) -> None:
        """Some job was asked to stop, perhaps one above its own; from any thread."""
        ...


_watchers: tuple[ref[StopWatcher], ...] = ()  # never altered, so that any thread may go through it
_adding = threading.Lock()


def watch_stops(watcher: StopWatcher) -> None:
    """Call `watcher.pass_stop_on()` whenever a job is asked to stop, as long as the watcher lives."""
    global _watchers
    with _adding:
        _watchers = (*(each for each in _watchers if each() is not None), ref(watcher))


def announce_stop() -> None:
    """A job of this process was asked to stop: those below it may run elsewhere."""
    for each in _watchers:
        if (watcher := each()) is not None:
            watcher.pass_stop_on()


def _renew_lock() -> None:
    global _adding
    _adding = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


_RUNNING: ContextVar[RunningJob | None] = ContextVar("treadle job", default=None)


class running:  # noqa: N801 - read as a word: `with running(job):`
    """The block is the body of the job.

    A class and no generator: `contextmanager` cannot pass on an exception that is frozen.
    """

    __slots__ = ("_job", "_token")

    def __init__(self, job: RunningJob) -> None:
        self._job = job

    def __enter__(self) -> None:
        self._token = _RUNNING.set(self._job)

    def __exit__(self, *_: object) -> None:
        _RUNNING.reset(self._token)


def running_job() -> RunningJob | None:
    """The job that runs here; None outside a job."""
    return _RUNNING.get()


def stop_requested() -> bool:
    """Whether the job that runs here was asked to stop, or this process was told to end by SIGTERM."""
    job, look = _RUNNING.get(), _LOOK.get()
    asked = asked_to_stop(job) or told_to_end()
    if asked and look is not None and look.job is job:
        look.saw_stop = True
    return asked


class noting_looks:  # noqa: N801 - read as a word: `with noting_looks() as looks:`
    """Whether the block, or a thread that works for it, has seen that its job is to stop: `looks.saw_stop`.

    What the jobs see that it submits does not count.
    """

    __slots__ = ("_token", "job", "saw_stop")

    def __init__(self) -> None:
        self.job = _RUNNING.get()
        self.saw_stop = False

    def __enter__(self) -> Self:
        self._token = _LOOK.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _LOOK.reset(self._token)


_LOOK: ContextVar[noting_looks | None] = ContextVar("treadle looks", default=None)


def stopper() -> Callable[[], None]:
    """What asks the job that runs here to stop, from any thread, at any time; does nothing outside a job."""
    job = _RUNNING.get()
    return _nothing if job is None else job.terminate


def _nothing() -> None:
    pass


def parked() -> AbstractContextManager[None]:
    """While the block waits for other jobs, the job that runs here gives its place to them."""
    job = _RUNNING.get()
    return nullcontext() if job is None else job.parked()
