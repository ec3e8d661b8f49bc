"""Jobs as threads of this process.

At most `max_workers` jobs run at once. A job that waits for another one gives its slot up for that
time, so a job may submit children and wait for them with a single worker. A thread that has no
work ends after a second, so an idle client holds none.

Threads cannot be killed: `terminate` keeps a pending job from starting and asks a running one,
which sees it in `stop_requested()`. The threads are daemons: a job that nobody waits for ends with
the process. So `losses` and `detached` of a request mean nothing here: a thread is not lost without
this process, and cannot outlive it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, Self, TypeVar

from treadle.errors import ArgumentError
from treadle.fray.admission import Admission
from treadle.fray.checks import check_count
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.lifetime import tell_of_forks
from treadle.fray.protocol import ActorHandle, ActorRequest, Client, JobHandle, JobRequest
from treadle.fray.requests import check_actor, check_job
from treadle.fray.resources import ResourceConfig, machine_resources
from treadle.fray.running_job import RunningJob, parked, running_job
from treadle.fray.slots import Slots
from treadle.fray.thread_actor import ThreadActor
from treadle.fray.thread_job import ThreadJob
from treadle.fray.waiting import await_end

T = TypeVar("T")
A = TypeVar("A")


class ThreadClient:
    """Runs at most `max_workers` jobs at once (default: one for each CPU).

    A job takes one slot, whatever resources it asks for; `resources` is only what `resources()` tells, and
    what a request may not go beyond; by default it is what the machine has. `known_as` is the client that
    jobs see as the current one, this one by default.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        resources: ResourceConfig | None = None,
        known_as: Client | None = None,
    ) -> None:
        workers = (os.cpu_count() or 1) if max_workers is None else check_count("max_workers", max_workers)
        self._workers = workers
        self._resources = resources
        # One CPU is always there; to look at the machine takes longer than most jobs.
        self._admission = Admission(self.resources, () if resources else (ResourceConfig(),))
        self._face: Client = known_as or self
        self._slots = Slots(workers)
        self._ids = count(1)
        self._unfinished: dict[Future[Any], ThreadJob[Any]] = {}
        self._open = True
        tell_of_forks(self)

    @property
    def max_workers(self) -> int:
        """How many jobs run at once."""
        return self._workers

    @property
    def shares_memory(self) -> bool:
        """True: jobs run in this process."""
        return True

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
        """
        check_job(request)
        what = f"job {request.name!r}"
        self._check(what, request.resources, request.environment)
        job = self._new_job(what, request.name, request.fn)
        try:
            self._slots.start(job.run)
        except BaseException as error:
            job.fail(error)
            raise
        return job

    def create_actor(self, request: ActorRequest[A]) -> ActorHandle[A]:
        """Make an actor; see `Client`.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
        """
        check_actor(request)
        what = f"actor {request.name!r}"
        self._check(what, request.resources, request.environment)
        actor_id = f"{request.name}#{next(self._ids)}"
        return ThreadActor(actor_id, request, self._slots, lambda name, fn: self._new_job(what, name, fn))

    def resources(self) -> ResourceConfig:
        """What there is in all; see `Client`."""
        if self._resources is None:
            self._resources = machine_resources()
        return self._resources

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs and no calls of actors; with `wait`, return when those taken have ended."""
        self._open = False
        self._slots.close()
        if wait:
            with parked():
                for each in self._others():
                    await_end(each.future)

    def after_fork(self) -> None:
        """In the child of a fork: the jobs are the parent's, and nobody here carries them on."""
        self._unfinished = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Shut down and wait; when an error leaves the block, ask the jobs to stop first."""
        self._open = False
        if kind is not None:
            for job in self._others():
                job.terminate()
        self.shutdown()

    def __repr__(self) -> str:
        return f"ThreadClient(max_workers={self._workers})"

    def _others(self) -> list[ThreadJob[Any]]:
        """The unfinished jobs, but for the one that runs here and those above it: it cannot wait for them."""
        here, job = set[RunningJob](), running_job()
        while job is not None:
            here.add(job)
            job = job.parent
        return [each for each in tuple(self._unfinished.values()) if each not in here]

    def _check(self, what: str, resources: ResourceConfig, environment: EnvironmentConfig) -> None:
        self._check_open(what)
        self._admission.check(what, resources)
        if not environment.is_plain:
            raise ArgumentError(
                f"{what}: environment: the threads of a process share its environment, so it must be plain, "
                f"got {environment}: use a client of processes or of Ray"
            )

    def _check_open(self, what: str) -> None:
        if not self._open:
            raise ArgumentError(f"{what}: the client was shut down and takes no more jobs")

    def _new_job(self, what: str, name: str, fn: Callable[[], T]) -> ThreadJob[T]:
        job = ThreadJob(f"{name}#{next(self._ids)}", fn, self._slots, self._face)
        self._unfinished[job.future] = job
        job.future.add_done_callback(self._unfinished.pop)
        if not self._open:  # asked only now: a shutdown from here on waits for the job
            job.terminate()
            self._check_open(what)
        return job
