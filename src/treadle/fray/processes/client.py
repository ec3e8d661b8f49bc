"""Jobs in other processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Self, TypeVar
from uuid import uuid4

from treadle.errors import ClusterError
from treadle.fray.checks import check_amount, check_count
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.lifetime import tell_of_forks, tell_of_the_end
from treadle.fray.parcel import LARGEST_RESULT, pack_call
from treadle.fray.processes.actor_calls import pack_make
from treadle.fray.processes.addresses import find_client, register_owner
from treadle.fray.processes.channel import Data
from treadle.fray.processes.crew import Crew
from treadle.fray.processes.job_book import JobBook
from treadle.fray.processes.process_actor import ProcessActor
from treadle.fray.processes.process_job import ProcessJob
from treadle.fray.processes.setting import WorkerOptions
from treadle.fray.processes.terms import Terms
from treadle.fray.protocol import ActorHandle, ActorRequest, Client, JobHandle, JobRequest
from treadle.fray.requests import check_actor, check_job
from treadle.fray.resources import ResourceConfig
from treadle.fray.running_job import RunningJob, parked, running_job
from treadle.fray.slots import Slots
from treadle.fray.waiting import await_end

T = TypeVar("T")
A = TypeVar("A")


class ProcessClient:
    """Runs at most `max_workers` jobs at once (default: one for each CPU), each in a process of its own.

    Workers are used again, and end when they have had nothing to do for some seconds. A job takes one slot,
    whatever resources it asks for; `resources` is only what `resources()` tells, and what a request may not
    go beyond. `environment` is that of jobs that ask for none. A terminated job has `grace` seconds before it
    is interrupted, and then as many before it is killed. A job that waits for others, and an actor, keep
    their processes; there are at most 256 of these beside `max_workers`. What a job changes in its process
    the next one there may see, but for the folder, the output and how it is interrupted. In a job, the
    current client is one that hands everything over to this process.
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
        self._terms = Terms(resources, environment)
        self._key = uuid4().hex
        register_owner(self._key, self)
        options = WorkerOptions(self._key, grace, check_count("max_result_bytes", max_result_bytes))
        self._slots = Slots(self._workers)
        self._crew = Crew(self._workers, options, self._slots, self)
        self._book = JobBook()
        self._actors: dict[str, ProcessActor[Any]] = {}
        tell_of_forks(self)
        tell_of_the_end(self)

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
        check_job(request)
        self._terms.check_open(f"job {request.name!r}")
        return self.submit_packed(request, pack_call(request.name, request.fn), running_job())

    def submit_packed(self, request: JobRequest[T], call: Data, parent: RunningJob | None) -> ProcessJob[T]:
        """As `submit`, of a call that is packed already, by a job that may be in another process."""
        environment = request.environment
        self._terms.check(f"job {request.name!r}", request.resources, environment)
        job: ProcessJob[T] = self._book.new_job(
            request.name,
            call,
            self._crew.carry_out,
            parent,
            setting=self._terms.setting(environment),
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
        check_actor(request)
        self._terms.check_open(f"actor {request.name!r}")
        return self.create_packed(request, pack_make(request))

    def create_packed(self, request: ActorRequest[A], make: Data) -> ProcessActor[A]:
        """As `create_actor`, by a job in a worker; `make` is packed already."""
        self._terms.check(f"actor {request.name!r}", request.resources, request.environment)
        actor_id = f"{request.name}#{self._book.new_number()}"
        new_job = partial(self._book.new_job, setting=self._terms.setting(request.environment))
        actor: ProcessActor[A] = ProcessActor(
            self._key, actor_id, make, request.losses, self._crew, new_job, self._terms.check_open
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
        return self._terms.resources()

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; with `wait`, return when those taken have ended, and their workers."""
        self._shut_down(wait=self._book.unfinished() if wait else None)

    def _shut_down(self, wait: Sequence[ProcessJob[Any]] | None) -> None:
        self._terms.close()
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
        self._terms.close()
        self._crew.pool.leave()

    def after_fork(self) -> None:
        """In the child of a fork: the jobs and the workers are the parent's."""
        self._book.forget_all()
        self._crew.after_fork()
        for actor in self._actors.values():
            actor.after_fork()

    def __reduce__(self) -> tuple[Any, ...]:
        return find_client, (self._key,)

    def __repr__(self) -> str:
        return f"ProcessClient(max_workers={self._workers})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Shut down and wait; when an error leaves the block, end the jobs first, but for detached ones.

        These go on then, and are not waited for.
        """
        if kind is None:
            self.shutdown()
            return
        self._terms.close()
        jobs = [each for each in self._book.unfinished() if not each.detached]
        for job in jobs:
            job.terminate()
        self._shut_down(wait=jobs)
