"""The client of a Ray cluster."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Self, TypeVar, cast
from weakref import WeakSet

import ray

from treadle.errors import ArgumentError, ClusterError
from treadle.fray.checks import check_amount, check_count
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.parcel import LARGEST_RESULT
from treadle.fray.protocol import ActorHandle, ActorRequest, Client, JobHandle, JobRequest
from treadle.fray.ray.actor import RayActor, callers
from treadle.fray.ray.connection import join, leave, local_cluster
from treadle.fray.ray.desk import ClientDesk
from treadle.fray.ray.desks import Desks
from treadle.fray.ray.dispatch import cluster_resources
from treadle.fray.ray.gate import Gate
from treadle.fray.ray.job import RayJob
from treadle.fray.ray.remote import new_host
from treadle.fray.requests import check_actor, check_job
from treadle.fray.resources import ResourceConfig
from treadle.fray.running_job import parked

A = TypeVar("A")
T = TypeVar("T")


class RayClient:
    """Runs jobs as tasks of a Ray cluster.

    With an `address`, that of the cluster's head node, it connects to what runs there, and waits for it at
    most `connect_timeout` seconds. Without one it uses the connection that this process has to Ray, else it
    starts a cluster on this machine for as long as the client is open: with `max_workers` processors, with
    `resources`, and with an object store of `object_store_bytes`, beyond which objects go to `spill_dir`.
    It can be reached from this machine only.

    `environment` is that of jobs that ask for none. A result may take `max_result_bytes`. A terminated job
    has `grace` seconds before it is interrupted, and then as many before it is killed.

    Raises:
        ClusterError: the cluster does not answer, or cannot be started.
        ArgumentError: an argument is wrong.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        max_workers: int | None = None,
        resources: ResourceConfig | None = None,
        environment: EnvironmentConfig = EnvironmentConfig(),  # noqa: B008 - frozen
        connect_timeout: float = 10.0,
        max_result_bytes: int = LARGEST_RESULT,
        object_store_bytes: int | None = None,
        spill_dir: str | None = None,
        grace: float = 3.0,
        known_as: Client | None = None,  # noqa: ARG002 - in another process it cannot be known
    ) -> None:
        check_amount("grace", grace)
        check_count("max_result_bytes", max_result_bytes)
        local = local_cluster(max_workers, resources, object_store_bytes, spill_dir)
        self._connection = join(address, local, connect_timeout)
        self._open = True
        self._jobs: WeakSet[RayJob[Any]] = WeakSet()
        self._hosts: list[Any] = []
        here = self._connection.here
        self._desks = Desks(partial(ClientDesk, environment, max_result_bytes, grace, here=here))
        self._desk = self._desks.main
        self.board, self.grace = self._desk.board, grace
        self._most = max_workers
        # A cluster that was there before may have room for more.
        limited = max_workers is not None and max_workers < self.resources().cpu
        self._gate = Gate(max_workers) if limited and max_workers else None
        callers[self._desk.name] = self
        self._connection.told.append(self._lose)

    @property
    def max_workers(self) -> int:
        """How many jobs that ask for one processor run at once."""
        there = max(1, int(self.resources().cpu))
        return there if self._most is None else min(there, self._most)

    @property
    def shares_memory(self) -> bool:
        """False: jobs run in other processes."""
        return False

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
            NotSendableError: its function cannot be pickled.
        """
        check_job(request)
        self._check_open(f"job {request.name!r}")
        job = self._sent(request)
        self._jobs.add(job)
        return cast("JobHandle[T]", job)

    def _sent(self, request: JobRequest[Any]) -> RayJob[Any]:
        if request.detached and not self._connection.here:
            desk = self._desks.keeper()
            return desk.dispatch.send(desk.dispatch.envelope(request, keeper=desk.board))
        dispatch = self._desk.dispatch
        envelope = dispatch.envelope(request)
        return dispatch.send(envelope) if self._gate is None else dispatch.queue(envelope, self._gate)

    def create_actor(self, request: ActorRequest[A]) -> ActorHandle[A]:
        """Make an actor; see `Client`. It holds what it asks for beside processors as long as it lives.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
            NotSendableError: `make` cannot be pickled.
        """
        check_actor(request)
        self._check_open(f"actor {request.name!r}")
        opening = self._desk.dispatch.opening(request)
        host = new_host(opening)
        self._hosts.append(host)
        return cast("ActorHandle[A]", RayActor(opening.ticket.job_id, opening.ticket.board, host))

    def call(self, actor: RayActor[Any], method: str, args: Any, kwargs: Any) -> RayJob[Any]:
        """Hand over one call of an actor."""
        self._check_open(f"job {actor.actor_id}.{method}")
        job = self._desk.dispatch.call(actor, method, args, kwargs)
        self._jobs.add(job)
        return job

    def resources(self) -> ResourceConfig:
        """What the cluster has in all, now: one that grows has more later."""
        return cluster_resources()

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; with `wait`, return when those taken have ended. See `Client`.

        A cluster that was there before is left as it is; one that was started here ends.
        """
        if not self._open:
            return
        self._open = False
        if wait:
            self._close()
        else:
            threading.Thread(target=self._close, name="treadle-close", daemon=True).start()

    def _close(self) -> None:
        for job in tuple(self._jobs):
            job.wait()
        with parked():
            self._desks.await_orphans()
        self._connection.told.remove(self._lose)
        self._desks.close()
        if self._is_connected():
            for each in (*self._hosts, self._desk.board):
                ray.kill(each)
        leave(self._connection)

    def __repr__(self) -> str:
        count = self.max_workers if self._is_connected() else self._most
        return f"RayClient(max_workers={count})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Shut down and wait; when an error leaves the block, end the jobs first, but for detached ones."""
        if kind is not None:
            self._end_jobs()
        self.shutdown()

    def _end_jobs(self) -> None:
        for job in tuple(self._jobs):
            if job.desk is not self._desk:
                self._jobs.discard(job)
            else:
                job.terminate()
        self._desks.abandon_orphans()

    def _lose(self, how: str) -> None:
        for job in tuple(self._jobs):
            job.finish(
                ClusterError(f"job {job.job_id}: the cluster was lost: {how}; nobody knows how far it came")
            )

    def _check_open(self, what: str) -> None:
        if not self._open:
            raise ArgumentError(f"{what}: the client was shut down and takes no more jobs")
        if not self._is_connected():
            how = self._connection.lost or "`ray.shutdown()` was called in this process"
            raise ClusterError(f"{what}: the cluster was lost: {how}; open a new client")

    def _is_connected(self) -> bool:
        return not self._connection.lost and ray.is_initialized()
