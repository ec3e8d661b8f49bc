"""A client that runs jobs on threads, writes down what it was asked for, and fails on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Self, TypeVar

from treadle.errors import WorkerLostError
from treadle.fray import (
    ActorHandle,
    ActorRequest,
    JobHandle,
    JobRequest,
    ResourceConfig,
    ThreadClient,
    machine_resources,
)

T = TypeVar("T")
A = TypeVar("A")


@dataclass
class _Fault:
    """What befalls the next `left` jobs whose name matches."""

    pattern: str
    left: int
    error: Exception | None
    after: bool


class RecordingClient:
    """A fray client on `max_workers` threads (default: one for each CPU) for tests.

    `requests` are the jobs that it was handed, in order, those it refused included. A job of a runner has the
    id of its step as its name. `actors` are the actors that it was asked for, in order. `resources` is what
    it says there is, what the machine has by default.
    """

    def __init__(self, max_workers: int | None = None, *, resources: ResourceConfig | None = None) -> None:
        self.requests: list[JobRequest[Any]] = []
        self.actors: list[ActorRequest[Any]] = []
        self.peak = 0
        """The most jobs that were running at one moment."""
        self._resources = resources or machine_resources()
        self._threads = ThreadClient(max_workers, resources=self._resources, known_as=self)
        self._faults: list[_Fault] = []
        self._running = 0
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """The names of the jobs, in the order in which they were handed over."""
        return [each.name for each in self.requests]

    @property
    def max_workers(self) -> int:
        """How many jobs run at once."""
        return self._threads.max_workers

    @property
    def shares_memory(self) -> bool:
        """True: jobs run in this process."""
        return True

    def refuse(self, pattern: str, error: Exception | None = None, *, times: int = 1) -> None:
        """The next `times` jobs with such a name (a glob, such as "train-*") are not taken.

        `submit` raises `error`, by default a WorkerLostError.
        """
        refusal = error or WorkerLostError(f"refused by the test, as {pattern!r}")
        self._faults.append(_Fault(pattern, times, refusal, after=False))

    def lose(self, pattern: str, *, times: int = 1, after: bool = False) -> None:
        """The next `times` jobs with such a name end as if their worker had been killed.

        That is before they begin, or with `after=True` when they have done all their work.
        """
        self._faults.append(_Fault(pattern, times, None, after))

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`."""
        with self._lock:
            self.requests.append(request)
            fault = self._fault(request.name)
        if fault is not None and fault.error is not None:
            raise fault.error
        lost = None if fault is None else fault.after
        return self._threads.submit(replace(request, fn=partial(self._call, request.fn, lost)))

    def create_actor(self, request: ActorRequest[A]) -> ActorHandle[A]:
        """Make an actor; see `Client`. Faults befall jobs only."""
        with self._lock:
            self.actors.append(request)
        return self._threads.create_actor(request)

    def resources(self) -> ResourceConfig:
        """What there is in all; see `Client`."""
        return self._resources

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; see `Client`."""
        self._threads.shutdown(wait=wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._threads.__exit__(kind, *rest)

    def _fault(self, name: str) -> _Fault | None:
        for fault in self._faults:
            if fault.left and fnmatchcase(name, fault.pattern):
                fault.left -= 1
                return fault
        return None

    def _call(self, fn: Callable[[], T], lost: bool | None) -> T:
        """`lost`: None when nothing befalls it, else whether it has done its work by then."""
        if lost is False:
            raise WorkerLostError("lost by the test before it began")
        with self._lock:
            self._running += 1
            self.peak = max(self.peak, self._running)
        try:
            result = fn()
        finally:
            with self._lock:
                self._running -= 1
        if lost:
            raise WorkerLostError("lost by the test after its work was done")
        return result
