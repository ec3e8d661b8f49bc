"""What a place that runs work promises: interfaces, no implementation.

A `Client` takes a `JobRequest` and gives a `JobHandle`; the handle follows the job to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol, TypeVar

from treadle.fray.requests import ActorRequest, JobRequest
from treadle.fray.resources import ResourceConfig

__all__ = ["ActorHandle", "ActorRequest", "Client", "JobHandle", "JobRequest", "JobStatus"]

T = TypeVar("T")
A = TypeVar("A")
T_co = TypeVar("T_co", covariant=True)
A_co = TypeVar("A_co", covariant=True)


class JobStatus(Enum):
    """Where a job stands; the last three are final."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self not in (JobStatus.PENDING, JobStatus.RUNNING)


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
            concurrent.futures.CancelledError: it was terminated, and has raised no error of its own; the
                cause is what it raised since it was interrupted.
        """
        ...

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(handle)` once the job has ended, at once when it already has."""
        ...

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines that the job has printed so far, without line ends."""
        ...

    def terminate(self) -> None:
        """End the job and those that it has submitted; one that has ended is left alone.

        It is asked first, see `stop_requested`. Where it has a process of its own, that is interrupted, and
        killed when it does not end even then; a thread cannot be killed.
        """
        ...


class ActorHandle(Protocol[A_co]):
    """An object that lives somewhere. Its calls run one at a time, in the order in which they came.

    `handle.method(...)` waits for the result; `handle.submit("method", ...)` gives the handle of a job. An
    actor can be sent to jobs of the same client. A call whose worker is lost fails with a WorkerLostError,
    and is not made again, since nobody knows how far it came; the next call finds an object made anew.
    """

    @property
    def actor_id(self) -> str:
        """Unique within the client."""
        ...

    @property
    def restarts(self) -> int:
        """How many times it was lost and made again; what it had kept is gone then."""
        ...

    def submit(self, method: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Call a method; returns at once."""
        ...

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """The method, which waits for its result when called."""
        ...

    def terminate(self) -> None:
        """End it; calls that have not ended, and later ones, fail."""
        ...


class Client(Protocol):
    """A place that runs jobs.

    On threads they run under the context variables of whoever submitted them; in other processes, under the
    travelling ones. A request that can never be met is refused at once, with what there is.
    """

    @property
    def max_workers(self) -> int:
        """How many jobs that ask for one CPU run at once."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether jobs run in this process."""
        ...

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; returns at once."""
        ...

    def create_actor(self, request: ActorRequest[A]) -> ActorHandle[A]:
        """Make an actor; returns at once. An idle actor takes no place from jobs."""
        ...

    def resources(self) -> ResourceConfig:
        """What there is in all; what is asked for beyond it can never run here."""
        ...

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; with `wait`, return when those taken have ended."""
        ...
