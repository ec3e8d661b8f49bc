"""Where the object of an actor lives: a worker of its own, made, lost, and made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from treadle.errors import WorkerLostError
from treadle.fray.ending import cancelled
from treadle.fray.parcel import pack_error, returned
from treadle.fray.processes.channel import Data
from treadle.fray.processes.crew import Crew
from treadle.fray.processes.loss import loss_error
from treadle.fray.processes.process_job import ProcessJob
from treadle.fray.processes.service import Lost
from treadle.fray.processes.worker_process import WorkerProcess
from treadle.fray.running_job import RunningJob, asked_to_stop


class NewJob(Protocol):
    """Makes a job of the actor, below `parent`; `carry_out` is what runs it in a thread with a slot."""

    def __call__(
        self,
        name: str,
        call: Data,
        carry_out: Callable[[ProcessJob[Any]], None],
        parent: RunningJob | None,
    ) -> ProcessJob[Any]:
        """The job."""
        ...


class ActorHome:
    """Makes the object by the packed call `make_call`, again after up to `losses` losses, and calls it.

    For one thread at a time, but for `end`.
    """

    def __init__(self, actor_id: str, make_call: Data, losses: int, crew: Crew, new_job: NewJob) -> None:
        self.restarts = 0
        self._id = actor_id
        self._make_call = make_call
        self._losses = losses
        self._lost = 0
        self._crew = crew
        self._new_job = new_job
        self._worker: WorkerProcess | None = None  # with the object in it
        self._never: Data | None = None  # the outcome of all calls, when there will be no object

    def give_up(self, error: Exception) -> None:
        """There is no object, and will be none: all calls raise this."""
        self._worker = None
        self._never = pack_error(error, traced=False)

    def end(self, *, gently: bool) -> None:
        """End the process, if there is one, while no call runs; `gently`: it may clear up first."""
        worker, self._worker = self._worker, None
        if worker is not None and gently:
            self._crew.pool.retire(worker)
        elif worker is not None:
            self._crew.pool.discard(worker)

    def carry_out(self, job: ProcessJob[Any]) -> None:
        """One call, in a thread with a slot."""
        try:
            while not job.future.done():
                self._try(job)
        except Exception as error:  # noqa: BLE001 - raised by whoever asks for the result
            job.fail(error)

    def _try(self, job: ProcessJob[Any]) -> None:
        worker = self._at_hand()
        if worker is not None:
            self._call(job, worker)
        elif self._never is not None:
            job.end(self._never)
        elif asked_to_stop(job):
            job.fail(cancelled(job.job_id))
        else:
            self.restarts += 1
            self._new_job(f"{self._id}.make", self._make_call, self.make, job).run()

    def _call(self, job: ProcessJob[Any], worker: WorkerProcess) -> None:
        with self._crew.serving(job, worker) as service:
            outcome = service.serve(job.call)
            if not isinstance(outcome, Lost):
                job.end(outcome)
                return
            service.abandon_children()
            error = self._lose(job, worker, outcome)
            if outcome.begun or asked_to_stop(job):  # else the object is made anew, and the call made there
                job.fail(error)

    def _at_hand(self) -> WorkerProcess | None:
        """The worker with the object, if it is still there."""
        worker = self._worker
        if worker is not None and not worker.is_fit():
            self._worker = None
            how = self._crew.pool.discard(worker)
            self._count(
                WorkerLostError(f"actor {self._id}: its worker (process {worker.pid}) {how}, while idle")
            )
        return self._worker

    def make(self, job: ProcessJob[Any]) -> None:
        """Make the object, in a thread with a slot; the worker that has it is kept."""
        try:
            while not job.future.done():
                self._try_make(job)
        except Exception as error:  # noqa: BLE001 - raised by whoever calls
            self.give_up(error)
            job.fail(error)

    def _try_make(self, job: ProcessJob[Any]) -> None:
        if self._never is not None:
            job.end(self._never)
            return
        worker = self._crew.pool.take(job.setting)
        with self._crew.serving(job, worker) as service:
            outcome = service.serve(job.call)
            if isinstance(outcome, Lost):
                error = self._lose(job, worker, outcome)
                if asked_to_stop(job):
                    job.fail(error)
                return
            worker.jobs += 1
            if returned(outcome):
                self._worker = worker
            else:
                self._never = outcome
                self._crew.pool.discard(worker)
            job.end(outcome)

    def _lose(self, job: ProcessJob[Any], worker: WorkerProcess, lost: Lost) -> BaseException:
        """Take note of it; what the job is to raise."""
        had_object, self._worker = self._worker is not None, None
        how = self._crew.pool.discard(worker)
        if asked_to_stop(job):
            return cancelled(job.job_id, ", and its worker was killed")
        counts = had_object or lost.begun or not worker.jobs
        last = self._lost + counts > self._losses
        advice = self._used_up() if last else "the next call finds it made anew"
        error = loss_error(job, worker, lost, how, advice)
        if lost.unstarted:
            self.give_up(error)
        elif counts:
            self._count(error)
        return error

    def _count(self, error: Exception) -> None:
        self._lost += 1
        if self._lost > self._losses:
            times = "once" if self._lost == 1 else f"{self._lost} times"
            never = WorkerLostError(f"actor {self._id} was lost {times}, and {self._used_up()}")
            never.__cause__ = error
            self.give_up(never)

    def _used_up(self) -> str:
        return f"its losses={self._losses} are used up: create another"
