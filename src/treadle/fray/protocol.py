"""What a place that runs work promises: interfaces and records, no implementation.

A `Client` takes a `JobRequest` and gives a `JobHandle`; the handle follows the job to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from treadle.fray.resources import ResourceConfig

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class JobStatus(Enum):
    """Where a job stands; the last three are final."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


_ONE_CPU = ResourceConfig()


@dataclass(frozen=True)
class JobRequest(Generic[T]):
    """Call `fn()` somewhere; `name` is for people."""

    name: str
    fn: Callable[[], T]
    resources: ResourceConfig = _ONE_CPU


class JobHandle(Protocol[T_co]):
    """One submitted job."""

    @property
    def job_id(self) -> str:
        """Unique within the client."""
        ...

    def status(self) -> JobStatus:
        """Where the job stands now."""
        ...

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = False) -> JobStatus:
        """Block until the job has ended, and give its final status.

        Raises:
            TimeoutError: it has not ended after `timeout` seconds.
            BaseException: with `raise_on_failure`, what `result` raises.
        """
        ...

    def result(self, timeout: float | None = None) -> T_co:
        """Block until the job has ended, and give what it returned or raise what it raised.

        Raises:
            TimeoutError: it has not ended after `timeout` seconds.
            concurrent.futures.CancelledError: it was terminated before it began.
        """
        ...

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(handle)` once the job has ended, at once when it already has."""
        ...

    def terminate(self) -> None:
        """End the job, as far as the backend can; a job that has ended is left alone."""
        ...


class Client(Protocol):
    """A place that runs jobs. Each runs under the context variables of whoever submitted it."""

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; returns at once."""
        ...

    def resources(self) -> ResourceConfig:
        """What there is in all; what is asked for beyond it can never run here."""
        ...

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; with `wait`, return when those taken have ended."""
        ...
