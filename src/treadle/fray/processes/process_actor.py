"""An actor in a process of its own, as the driver sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from treadle.errors import ClusterError
from treadle.fray.mailbox import Mailbox
from treadle.fray.processes.actor_calls import ActorCalls, pack_method
from treadle.fray.processes.actor_home import ActorHome, NewJob
from treadle.fray.processes.channel import Data
from treadle.fray.processes.crew import Crew
from treadle.fray.processes.process_job import ProcessJob
from treadle.fray.protocol import JobHandle
from treadle.fray.running_job import RunningJob, running_job

A = TypeVar("A")


class ProcessActor(ActorCalls, Generic[A]):
    """An actor of a `ProcessClient`; see `ActorHandle`.

    Its worker is its own, from the first call on. `make` is the packed call that makes the object there.
    `check` refuses calls once the client was shut down.
    """

    def __init__(
        self,
        client_key: str,
        actor_id: str,
        make: Data,
        losses: int,
        crew: Crew,
        new_job: NewJob,
        check: Callable[[str], None],
    ) -> None:
        super().__init__(client_key, actor_id)
        self._crew = crew
        self._new_job = new_job
        self._check = check
        self._home = ActorHome(actor_id, make, losses, crew, new_job)
        self._lock = threading.Lock()
        self._runs: ProcessJob[Any] | None = None
        self._unfinished = 0
        self._terminated = False
        self._closing = False
        self._mailbox: Mailbox[ProcessJob[Any]] = Mailbox(self._begin)
        self._put(new_job(f"{actor_id}.make", make, self._home.make, running_job()))

    @property
    def restarts(self) -> int:
        """How many times it was made again."""
        return self._home.restarts

    def submit(self, method: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Call a method; returns at once.

        Raises:
            ArgumentError: the client was shut down.
            NotSendableError: an argument cannot be pickled.
        """
        return self.submit_packed(method, pack_method(self._id, method, args, kwargs), running_job())

    def submit_packed(self, method: str, call: Data, parent: RunningJob | None) -> ProcessJob[Any]:
        """As `submit`, of a call that is packed already, by a job that may be in another process."""
        name = f"{self._id}.{method}"
        self._check(name)
        job = self._new_job(name, call, self._home.carry_out, parent)
        self._put(job)
        return job

    def terminate(self) -> None:
        """End its process. Calls that have not begun, and later ones, are stopped; the one that runs, too."""
        self._terminated = True
        for job in self._mailbox.clear():
            job.terminate()
        if (runs := self._runs) is not None:
            runs.terminate()
        self._end_worker(gently=False)

    def close(self, *, gently: bool) -> None:
        """End its process once all calls have ended; `gently`: it may take its time to clear up."""
        self._closing = True
        if not self._unfinished:
            self._end_worker(gently=gently)

    def after_fork(self) -> None:
        """In the child of a fork: the object is the parent's."""
        self._lock = threading.Lock()
        self._mailbox = Mailbox(self._begin)
        self._home.give_up(
            ClusterError(f"actor {self._id} belongs to the process that this one was forked from")
        )

    def _put(self, job: ProcessJob[Any]) -> None:
        with self._lock:
            self._unfinished += 1
        job.future.add_done_callback(self._one_less)
        self._mailbox.put(job)
        if self._terminated:
            job.terminate()

    def _one_less(self, _: object) -> None:
        with self._lock:
            self._unfinished -= 1
            last = self._closing and not self._unfinished
        if last:
            self._end_worker(gently=False)

    def _end_worker(self, *, gently: bool) -> None:
        """End the process, unless a call runs: then that does so at its end."""
        with self._lock:
            if self._runs is None:
                self._home.end(gently=gently)

    def _begin(self, job: ProcessJob[Any]) -> bool:
        if self._terminated:
            job.terminate()
        if job.future.done():
            return False
        try:
            self._crew.slots.start(partial(self._work, job))
        except BaseException as error:  # noqa: BLE001 - it is the outcome of this call; others may fare better
            job.refuse(error)
            return False
        return True

    def _work(self, job: ProcessJob[Any]) -> None:
        with self._lock:
            self._runs = job
        if self._terminated:
            job.terminate()
        job.run()
        with self._lock:
            self._runs = None
        if self._terminated or (self._closing and not self._unfinished):
            self._end_worker(gently=False)
        self._mailbox.ended()
