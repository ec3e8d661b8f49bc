"""The client of the jobs in a worker: whatever they hand over goes to the driver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from treadle.errors import UsageError
from treadle.fray.parcel import pack_call
from treadle.fray.processes.actor_calls import ActorCalls, pack_make, pack_method
from treadle.fray.processes.addresses import register_owner
from treadle.fray.processes.line import Line
from treadle.fray.processes.worker_job import ChildJob
from treadle.fray.protocol import ActorHandle, ActorRequest, JobHandle, JobRequest
from treadle.fray.requests import check_actor, check_job
from treadle.fray.resources import ResourceConfig

T = TypeVar("T")
A = TypeVar("A")


class WorkerClient:
    """The `Client` of jobs in a worker: what they submit goes to the driver, as children of theirs."""

    def __init__(self, line: Line, client_key: str) -> None:
        self._line = line
        self._key = client_key
        register_owner(client_key, self)

    @property
    def max_workers(self) -> int:
        """How many jobs run at once."""
        count: int = self._line.ask("max_workers")
        return count

    @property
    def shares_memory(self) -> bool:
        """False: jobs run in other processes."""
        return False

    def __repr__(self) -> str:
        return "<the client of this job, in another process>"

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
            NotSendableError: the function cannot be pickled.
            ClusterError: the driver is gone.
        """
        check_job(request)
        call = pack_call(request.name, request.fn)
        child: ChildJob[T] = ChildJob(self._line, self._line.new_number())
        bare = replace(request, fn=_nothing)
        child.begun(self._line.ask("submit", child.number, bare, call))
        return child

    def create_actor(self, request: ActorRequest[A]) -> ActorHandle[A]:
        """Make an actor; see `Client`.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
            NotSendableError: `make` cannot be pickled.
            ClusterError: the driver is gone.
        """
        check_actor(request)
        bare = replace(request, make=_nothing)
        return self.actor(self._line.ask("create_actor", bare, pack_make(request)))

    def actor(self, actor_id: str) -> ActorHandle[Any]:
        """The handle of an actor of the driver's client; see `Owner`."""
        return RemoteActor(self._line, self._key, actor_id)

    def resources(self) -> ResourceConfig:
        """What there is in all; see `Client`."""
        there: ResourceConfig = self._line.ask("resources")
        return there

    def shutdown(self, *, wait: bool = True) -> None:  # noqa: ARG002 - as in `Client`
        """Refused: the client is its owner's.

        Raises:
            UsageError: always.
        """
        raise UsageError("a job cannot shut down the client that runs it: do it where the client was made")


class RemoteActor(ActorCalls):
    """The handle, in a worker, of an actor of the driver's client; see `ActorHandle`."""

    def __init__(self, line: Line, client_key: str, actor_id: str) -> None:
        super().__init__(client_key, actor_id)
        self._line = line

    @property
    def restarts(self) -> int:
        """How many times it was made again."""
        times: int = self._line.ask("actor_restarts", self._id)
        return times

    def submit(self, method: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Call a method; returns when the driver has taken the call.

        Raises:
            ArgumentError: the client was shut down.
            NotSendableError: an argument cannot be pickled.
            ClusterError: the driver is gone, or has no such actor.
        """
        call = pack_method(self._id, method, args, kwargs)
        child: ChildJob[Any] = ChildJob(self._line, self._line.new_number())
        child.begun(self._line.ask("call_actor", child.number, self._id, method, call))
        return child

    def terminate(self) -> None:
        """End it; see `ActorHandle`."""
        self._line.tell("terminate_actor", self._id)


def _nothing() -> Any:
    return None
