"""Hands jobs to Ray: for the client and, inside of jobs, for those who submit more."""

from __future__ import annotations

import secrets
from functools import lru_cache, partial
from itertools import count
from typing import Any, NamedTuple, TypeVar, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from treadle.errors import ArgumentError
from treadle.fray.admission import Admission
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.parcel import pack_call
from treadle.fray.protocol import ActorRequest, JobRequest
from treadle.fray.ray.actor import RayActor, host_name
from treadle.fray.ray.actor_call import ActorCall
from treadle.fray.ray.gate import Gate
from treadle.fray.ray.job import RayJob
from treadle.fray.ray.options import found_resources, ray_resources, runtime_env
from treadle.fray.ray.task_future import Desk
from treadle.fray.ray.ticket import NAMESPACE, Call, Make, Opening, Ticket
from treadle.fray.resources import ResourceConfig

T = TypeVar("T")

LARGE_CALL = 100_000
"""Bytes; a larger call goes by way of the object store."""


class Kind(NamedTuple):
    """The tasks of jobs that ask for the same: `task` is ready to be called, and has these options."""

    task: Any
    options: dict[str, Any]


class Envelope(NamedTuple):
    """A packed call on its way, and what it needs where it runs.

    With a `keeper`, a board, that submits the task, which goes on then when this process is gone.
    """

    call: Any
    ticket: Ticket
    kind: Kind
    keeper: Any = None


class Dispatch:
    """Hands jobs to the cluster. `environment` is that of jobs that ask for none.

    `ancestors` are the job that submits and those that it descends from; empty for the client. `here` says
    that all workers are on this machine.
    """

    def __init__(
        self,
        desk: Desk,
        board: str,
        carry: Any,
        environment: EnvironmentConfig,
        *,
        here: bool,
        ancestors: tuple[str, ...] = (),
        prefix: str = "",
    ) -> None:
        self._desk = desk
        self._board = board
        self._carry = carry
        self._environment = environment
        self._here = here
        self._ancestors = ancestors
        self._ids = count(1)
        self._mark = f"{secrets.token_hex(3)}." if ancestors else prefix
        self._admission = Admission(cluster_resources)
        self._kind = lru_cache(maxsize=256)(self._new_kind)

    def new_id(self, name: str) -> str:
        """An identity that no other job of the client has."""
        return f"{name}#{self._mark}{next(self._ids)}"

    def envelope(self, request: JobRequest[Any], lane: str = "", keeper: Any = None) -> Envelope:
        """Check the request and pack its call.

        Raises:
            ArgumentError: it can never be met.
            NotSendableError: its call cannot be pickled.
        """
        what = f"job {request.name!r}"
        self._admission.check(what, request.resources)
        environment = self._environment if request.environment.is_plain else request.environment
        kind = self._kind(request.name, request.resources, environment, request.losses)
        call: Any = pack_call(request.name, request.fn)
        if len(call) > LARGE_CALL:
            call = ray.put(call)
        return Envelope(call, self._ticket(request.name, environment, lane), kind, keeper)

    def send(self, envelope: Envelope) -> RayJob[Any]:
        """Hand the job over."""
        call, ticket, kind, keeper = envelope
        if keeper is None:
            return RayJob(ticket.job_id, self._desk, ticket.lane, kind.task.remote(call, ticket.packed()))
        ref = keeper.carry.remote(call, ticket.packed(), kind.options)
        cancel = partial(keeper.cancel.remote, ticket.job_id)
        return RayJob(ticket.job_id, self._desk, ticket.lane, ref, cancel)

    def queue(self, envelope: Envelope, gate: Gate) -> RayJob[Any]:
        """Hand the job over when the gate lets it through."""
        job: RayJob[Any] = RayJob(envelope.ticket.job_id, self._desk)
        gate.put(job, partial(envelope.kind.task.remote, envelope.call, envelope.ticket.packed()))
        return job

    def opening(self, request: ActorRequest[Any]) -> Opening:
        """Check the request of an actor and pack how it is made.

        Raises:
            ArgumentError: it can never be met.
            NotSendableError: `make` cannot be pickled.
        """
        what = f"actor {request.name!r}"
        self._admission.check(what, request.resources)
        environment = self._environment if request.environment.is_plain else request.environment
        make = pack_call(
            request.name, cast("Any", Make(request.make)), kind="actor", parts=[("", request.make)]
        )
        ticket = self._ticket(request.name, environment)
        options = {
            **ray_resources(request.resources),
            "num_cpus": 0,  # it must not keep a processor from jobs while it is idle
            "name": host_name(self._board, ticket.job_id),
            "namespace": NAMESPACE,
            "max_task_retries": 0,
        }
        if env := runtime_env(what, environment, here=self._here):
            options["runtime_env"] = env
        return Opening(options, make, ticket, request.losses)

    def call(self, actor: RayActor[Any], method: str, args: Any, kwargs: Any) -> RayJob[Any]:
        """Hand over a call of an actor."""
        name = f"{actor.actor_id}.{method}"
        call: Any = pack_call(name, cast("Any", Call(method, args, kwargs)))
        if len(call) > LARGE_CALL:
            call = ray.put(call)
        ancestors = (actor.actor_id, *self._ancestors)
        ticket = Ticket(self.new_id(name), self._board, ancestors, owns_cpu=False)
        ref = actor.host.call.remote(call, ticket.packed())
        return ActorCall(ticket.job_id, self._desk, ref, actor)

    def errand(self, envelope: Envelope, lane: str, node_id: str) -> Any:
        """The same job once more, as a task that needs no processor of its own, for another lane."""
        nearby = NodeAffinitySchedulingStrategy(node_id, soft=True)
        options = {**envelope.kind.options, "num_cpus": 0, "scheduling_strategy": nearby}
        ticket = envelope.ticket._replace(lane=lane, owns_cpu=False).packed()
        if envelope.keeper is None:
            return self._carry.options(**options).remote(envelope.call, ticket)
        return envelope.keeper.carry.remote(envelope.call, ticket, options)

    def _ticket(self, name: str, environment: EnvironmentConfig, lane: str = "") -> Ticket:
        folder = environment.working_dir if self._here else None
        return Ticket(self.new_id(name), self._board, self._ancestors, folder, lane)

    def _new_kind(
        self, name: str, resources: ResourceConfig, environment: EnvironmentConfig, losses: int
    ) -> Kind:
        what = f"job {name!r}"
        options = {"name": name, "max_retries": losses, "retry_exceptions": False, **ray_resources(resources)}
        if env := runtime_env(what, environment, here=self._here):
            options["runtime_env"] = env
        try:
            return Kind(self._carry.options(**options), options)
        except (ValueError, TypeError) as error:
            raise ArgumentError(f"{what}: Ray refuses what it asks for: {error}") from error


def cluster_resources() -> ResourceConfig:
    """What the cluster has in all."""
    return found_resources(cast("Any", ray).cluster_resources())
