"""The jobs of a client that have not ended, each with a number of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from treadle.fray.processes.channel import Data
from treadle.fray.processes.process_job import ProcessJob
from treadle.fray.processes.setting import Setting
from treadle.fray.running_job import RunningJob


class JobBook:
    """Numbers jobs and actors, and keeps jobs until they end."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._unfinished: dict[int, ProcessJob[Any]] = {}

    def new_number(self) -> int:
        """Of a job or an actor."""
        return next(self._numbers)

    def unfinished(self) -> tuple[ProcessJob[Any], ...]:
        """The jobs that have not ended, in the order in which they came."""
        return tuple(self._unfinished.values())

    def forget_all(self) -> None:
        """In the child of a fork: the jobs are the parent's."""
        self._unfinished = {}

    def new_job(
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
        """A job that `carry_out` runs; see `ProcessJob`."""
        number = self.new_number()
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
