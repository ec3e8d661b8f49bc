"""Jobs in other processes of this machine."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, Self, TypeVar
from uuid import uuid4
from weakref import WeakSet

from treadle.errors import ArgumentError, ClusterError
from treadle.fray.admission import Admission
from treadle.fray.checks import check_amount, check_count
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.parcel import LARGEST_RESULT, pack_call
from treadle.fray.processes.actor_calls import pack_make
from treadle.fray.processes.addresses import find_client, register_owner
from treadle.fray.processes.channel import Data
from treadle.fray.processes.crew import Crew
from treadle.fray.processes.process_actor import ProcessActor
from treadle.fray.processes.process_job import ProcessJob
from treadle.fray.processes.setting import Setting, WorkerOptions, check_environment
from treadle.fray.protocol import ActorHandle, ActorRequest, Client, JobHandle, JobRequest
from treadle.fray.resources import ResourceConfig, machine_resources
from treadle.fray.running_job import RunningJob, parked, running_job
from treadle.fray.slots import Slots
from treadle.fray.thread_job import await_end

T = TypeVar("T")
A = TypeVar("A")


class ProcessClient:
    """Runs at most `max_workers` jobs at once (default: one for each CPU), each in a process of its own.

    Workers are used again, and end when they have had nothing to do for some seconds. A job takes one slot,
    whatever resources it asks for; `resources` is only what `resources()` tells, and what a request may not
    go beyond. `environment` is that of jobs that ask for none. A terminated job has `grace` seconds before it
    is interrupted, and then as many before it is killed. In a job, the current client is one that hands
    everything over to this process.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        resources: ResourceConfig | None = None,
        environment: EnvironmentConfig = EnvironmentConfig(),  # noqa: B008 - it is frozen
        max_result_bytes: int = LARGEST_RESULT,
        grace: float = 2.0,
        known_as: Client | None = None,  # noqa: ARG002 - jobs are elsewhere, and see what stands for it there
    ) -> None:
        self._workers = (
            (os.cpu_count() or 1) if max_workers is None else check_count("max_workers", max_workers)
        )
        check_amount("grace", grace)
        check_environment("client", environment)
        self._resources = resources
        # One CPU is always there; to look at the machine takes longer than most jobs.
        self._admission = Admission(self.resources, () if resources else (ResourceConfig(),))
        self._environment = environment
        self._key = uuid4().hex
        register_owner(self._key, self)
        options = WorkerOptions(self._key, grace, check_count("max_result_bytes", max_result_bytes))
        self._slots = Slots(self._workers)
        self._crew = Crew(self._workers, options, self._slots, self)
        self._ids = count(1)
        self._actors: dict[str, ProcessActor[Any]] = {}
        self._unfinished: dict[int, ProcessJob[Any]] = {}
        self._open = True
        _alive.add(self)

    @property
    def max_workers(self) -> int:
        """How many jobs run at once."""
        return self._workers

    @property
    def shares_memory(self) -> bool:
        """False: jobs run in other processes."""
        return False

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
            NotSendableError: the function cannot be pickled.
        """
        self._check_open(f"job {request.name!r}")
        return self.submit_packed(request, pack_call(request.name, request.fn), running_job())

    def submit_packed(self, request: JobRequest[T], call: Data, parent: RunningJob | None) -> ProcessJob[T]:
        """As `submit`, of a call that is packed already, by a job that may be in another process."""
        environment = request.environment
        self._check(f"job {request.name!r}", request.resources, environment)
        job = self._new_job(
            request.name,
            call,
            self._crew.carry_out,
            parent,
            setting=self._setting(environment),
            losses=request.losses,
            detached=request.detached,
        )
        try:
            self._slots.start(job.run)
        except BaseException as error:
            job.refuse(error)
            raise
        return job

    def create_actor(self, request: ActorRequest[A]) -> ActorHandle[A]:
        """Make an actor; see `Client`.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
            NotSendableError: `make` cannot be pickled.
        """
        self._check_open(f"actor {request.name!r}")
        return self.create_packed(request, pack_make(request))

    def create_packed(self, request: ActorRequest[A], make: Data) -> ProcessActor[A]:
        """As `create_actor`, by a job in a worker; `make` is packed already."""
        self._check(f"actor {request.name!r}", request.resources, request.environment)
        actor_id = f"{request.name}#{next(self._ids)}"
        new_job = partial(self._new_job, setting=self._setting(request.environment))
        actor: ProcessActor[A] = ProcessActor(
            self._key, actor_id, make, request.losses, self._crew, new_job, self._check_open
        )
        self._actors[actor_id] = actor
        return actor

    def actor(self, actor_id: str) -> ProcessActor[Any]:
        """The actor of that id; see `Owner`.

        Raises:
            ClusterError: there is none.
        """
        if (found := self._actors.get(actor_id)) is None:
            raise ClusterError(f"there is no actor {actor_id!r} here")
        return found

    def resources(self) -> ResourceConfig:
        """What there is in all; see `Client`."""
        if self._resources is None:
            self._resources = machine_resources()
        return self._resources

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; with `wait`, return when those taken have ended, and their workers."""
        self._shut_down(wait=tuple(self._unfinished.values()) if wait else None)

    def _shut_down(self, wait: Sequence[ProcessJob[Any]] | None) -> None:
        self._open = False
        self._slots.close()
        if wait:
            with parked():
                for job in wait:
                    await_end(job.future)
        for actor in tuple(self._actors.values()):
            actor.close(gently=wait is not None)
        self._crew.pool.close(wait=wait is not None)

    def leave(self) -> None:
        """This process ends, and with it all jobs that are not detached."""
        self._open = False
        self._crew.pool.leave()

    def after_fork(self) -> None:
        """In the child of a fork: the jobs and the workers are the parent's."""
        self._unfinished = {}
        self._crew.after_fork()
        for actor in self._actors.values():
            actor.after_fork()

    def __reduce__(self) -> tuple[Any, ...]:
        return find_client, (self._key,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Shut down and wait; after Ctrl-C, end the jobs first. A detached one goes on then, unwaited for."""
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            self.shutdown()
            return
        jobs = [each for each in tuple(self._unfinished.values()) if not each.detached]
        for job in jobs:
            job.terminate()
        self._shut_down(wait=jobs)

    def _check(self, what: str, resources: ResourceConfig, environment: EnvironmentConfig) -> None:
        self._check_open(what)
        self._admission.check(what, resources)
        check_environment(what, environment)

    def _check_open(self, what: str) -> None:
        if not self._open:
            raise ArgumentError(f"{what}: the client was shut down and takes no more jobs")

    def _setting(self, environment: EnvironmentConfig) -> Setting:
        return Setting.here(self._environment if environment.is_plain else environment)

    def _new_job(
        self,
        name: str,
        call: Data,
        carry_out: Callable[[ProcessJob[Any]], None],
        parent: RunningJob | None,
        *,
        setting: Setting,
        losses: int = 0,
        detached: bool = False,
    ) -> ProcessJob[Any]:
        number = next(self._ids)
        job: ProcessJob[Any] = ProcessJob(
            number,
            name,
            call,
            setting=setting,
            parent=parent,
            carry_out=carry_out,
            losses=losses,
            detached=detached,
        )
        self._unfinished[number] = job
        job.future.add_done_callback(partial(_forget, self._unfinished, number))
        return job


def _forget(jobs: dict[int, ProcessJob[Any]], number: int, _: object) -> None:
    jobs.pop(number, None)


_alive: WeakSet[ProcessClient] = WeakSet()


def _leave() -> None:
    for each in tuple(_alive):
        each.leave()


def _after_fork() -> None:
    for each in tuple(_alive):
        each.after_fork()


atexit.register(_leave)
os.register_at_fork(after_in_child=_after_fork)
