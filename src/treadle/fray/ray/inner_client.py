"""The current client inside of a job: what is submitted here goes to the same cluster.

A job that waits for those that it has submitted gives its processor to them. Ray does so by itself where the
main thread of a task waits for another task. Everywhere else (`parked`) the job sends *errands*: its oldest
job that may not have begun goes out once more, as a task that needs no processor. Whichever task of the two
comes first claims the job, and the other does nothing. So there is always one job that can begin.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import contextmanager
from typing import Any, TypeVar, cast
from weakref import WeakSet

import ray

from treadle.fray.ending import cancelled
from treadle.fray.protocol import ActorHandle, ActorRequest, JobHandle, JobRequest
from treadle.fray.ray.actor import RayActor, callers
from treadle.fray.ray.dispatch import Dispatch, Envelope, cluster_resources
from treadle.fray.ray.job import RayJob
from treadle.fray.ray.task_future import ANSWER_S
from treadle.fray.ray.task_job import TaskJob
from treadle.fray.requests import check_actor, check_job
from treadle.fray.resources import ResourceConfig
from treadle.fray.running_job import parked

A = TypeVar("A")
T = TypeVar("T")


class InnerClient:
    """See `Client`. It lives as long as its job."""

    def __init__(self, job: TaskJob, carry: Any) -> None:
        self._job = job
        self._carry = carry
        callers[job.ticket.board] = self
        self._lock = threading.Lock()
        self._parked = 0
        self._errand_runs = False
        self._waiting: deque[tuple[RayJob[Any], Envelope]] = deque()
        self._jobs: WeakSet[RayJob[Any]] = WeakSet()
        self._orphans: set[Future[Any]] = set()
        self._dispatch: Dispatch | None = None
        self.board = job.reporter.board
        self.grace = job.reporter.welcome.grace
        job.lend = self._lend

    @property
    def max_workers(self) -> int:
        """How many jobs that ask for one processor run at once."""
        return max(1, int(self.resources().cpu))

    @property
    def shares_memory(self) -> bool:
        """False: jobs run in other processes."""
        return False

    def __repr__(self) -> str:
        return "<the client of this job, in another process>"

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`."""
        check_job(request)
        dispatch = self._ready()
        envelope = dispatch.envelope(request, "own", self.board if request.detached else None)
        if self._job.stopped_ones():
            return cast("JobHandle[T]", self._refused(envelope.ticket.job_id))
        job = dispatch.send(envelope)
        with self._lock:
            self._waiting.append((job, envelope))
            self._jobs.add(job)
        self._next_errand()
        return cast("JobHandle[T]", job)

    def create_actor(self, request: ActorRequest[A]) -> ActorHandle[A]:
        """Make an actor, which lives as long as the client; see `Client`."""
        check_actor(request)
        opening = self._ready().opening(request)
        host = self.board.open_host.remote(opening).future().result(ANSWER_S)
        return cast("ActorHandle[A]", RayActor(opening.ticket.job_id, self._job.ticket.board, host))

    def call(self, actor: RayActor[Any], method: str, args: Any, kwargs: Any) -> RayJob[Any]:
        """Hand over one call of an actor."""
        dispatch = self._ready()
        if self._job.stopped_ones():
            return self._refused(dispatch.new_id(f"{actor.actor_id}.{method}"))
        job = dispatch.call(actor, method, args, kwargs)
        self._jobs.add(job)
        return job

    def resources(self) -> ResourceConfig:
        """What the cluster has in all."""
        return cluster_resources()

    def shutdown(self, *, wait: bool = True) -> None:
        """With `wait`, return when the jobs submitted here have ended. It ends with its job."""
        if wait:
            for job in tuple(self._jobs):
                job.wait()
            with parked():
                wait_for_futures(tuple(self._orphans))

    def heard(self, job_id: str, lots: int) -> None:
        """At once: what the jobs submitted here print goes from their workers to the client."""

    def adopt(self, job: Future[Any]) -> None:
        """Keep a job whose handle nobody holds."""
        self._orphans.add(job)
        job.add_done_callback(self._orphans.discard)

    def _ready(self) -> Dispatch:
        if self._dispatch is None:
            welcome, ticket = self._job.reporter.welcome, self._job.ticket
            self._dispatch = Dispatch(
                self,
                ticket.board,
                self._carry,
                welcome.environment,
                here=welcome.here,
                ancestors=(ticket.job_id, *ticket.ancestors),
            )
        return self._dispatch

    def _refused(self, job_id: str) -> RayJob[Any]:
        """A job that never begins, since the one here was asked to stop."""
        job: RayJob[Any] = RayJob(job_id, self)
        job.finish(cancelled(job_id))
        return job

    @contextmanager
    def _lend(self) -> Iterator[None]:
        with self._lock:
            self._parked += 1
        self._next_errand()
        try:
            yield
        finally:
            with self._lock:
                self._parked -= 1

    def _next_errand(self) -> None:
        """One errand at a time, while the job is parked."""
        with self._lock:
            while self._waiting and self._waiting[0][0].end is not None:
                self._waiting.popleft()
            if self._errand_runs or not self._parked or not self._waiting:
                return
            self._errand_runs = True
            job, envelope = self._waiting.popleft()
        node_id = ray.get_runtime_context().get_node_id()
        ref = self._ready().errand(envelope, "errand", node_id)
        job.follow("errand", ref)
        ref.future().add_done_callback(self._errand_ended)

    def _errand_ended(self, _: object) -> None:
        with self._lock:
            self._errand_runs = False
        self._next_errand()
