"""Jobs brought to workers: each job has one worker at a time, another one when that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from treadle.fray.ending import cancelled
from treadle.fray.processes.errands import Errands, Household
from treadle.fray.processes.loss import loss_error
from treadle.fray.processes.place import Place
from treadle.fray.processes.pool import Pool
from treadle.fray.processes.process_job import ProcessJob
from treadle.fray.processes.service import Lost, Service
from treadle.fray.processes.setting import WorkerOptions
from treadle.fray.processes.worker_process import WorkerProcess
from treadle.fray.running_job import asked_to_stop, watch_stops
from treadle.fray.slots import Slots


class Crew:
    """The workers of a client, and the jobs that they carry out."""

    def __init__(self, most: int, options: WorkerOptions, slots: Slots, household: Household) -> None:
        self.pool = Pool(most, options)
        self.slots = slots
        self._household = household
        self._services: set[Service] = set()
        watch_stops(self)

    def carry_out(self, job: ProcessJob[Any]) -> None:
        """Carry a job out in the calling thread, which holds a slot; it has ended then."""
        try:
            while not self._try(job):
                pass
        except Exception as error:  # noqa: BLE001 - raised by whoever asks for the result
            job.fail(error)

    @contextmanager
    def serving(self, job: ProcessJob[Any], worker: WorkerProcess) -> Iterator[Service]:
        """For the block the worker is at work for the job; after it the thread holds its slot again."""
        place = Place(self.slots, worker.wake)
        service = Service(job, worker, Errands(job, self._household), place)
        self._services.add(service)
        try:
            yield service
        except BaseException:
            self.pool.discard(worker)
            raise
        finally:
            self._services.discard(service)
            place.end()

    def pass_stop_on(self) -> None:
        """Some job was asked to stop: each service looks whether that concerns its own; see `StopWatcher`."""
        for service in tuple(self._services):
            service.worker.wake()

    def after_fork(self) -> None:
        """In the child of a fork: all that is done is done by the parent."""
        self._services = set()
        self.pool.after_fork()

    def _try(self, job: ProcessJob[Any]) -> bool:
        """Give the job to a worker; False when that was lost, and the job is to be tried again."""
        worker = self.pool.take(job.setting)
        with self.serving(job, worker) as service:
            outcome = service.serve(job.call)
            if isinstance(outcome, Lost):
                return self._bury(service, outcome)
            self._release(worker, job, clean=service.clean)
            job.end(outcome)
        return True

    def _release(self, worker: WorkerProcess, job: ProcessJob[Any], *, clean: bool) -> None:
        worker.jobs += 1
        if not clean:  # what it has started is to end, too
            self.pool.discard(worker)
        else:
            worker.had_detached |= job.detached
            self.pool.give_back(worker)

    def _bury(self, service: Service, lost: Lost) -> bool:
        job, worker = service.job, service.worker
        how = self.pool.discard(worker, group=not job.detached)
        service.abandon_children()
        if asked_to_stop(job):
            job.fail(cancelled(job.job_id, ", and its worker was killed"))
            return True
        if worker.jobs and not lost.begun:
            return False  # an idle worker that ended just when it was taken: no try of the job
        if job.losses and not lost.unstarted:
            job.losses -= 1
            return False
        job.fail(loss_error(job, worker, lost, how, "`losses` has it tried again"))
        return True
