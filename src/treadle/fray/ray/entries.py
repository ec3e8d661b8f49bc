"""What the board of a client has written down of its jobs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from treadle.fray.job_log import JobLog
from treadle.fray.ray.ticket import Start

KEPT_JOBS = 5_000
"""Of how many jobs the board knows where they ran and what they printed: those it heard of last."""


class JobEntry:
    """What is known of one job."""

    def __init__(self) -> None:
        self.start: Start | None = None
        self.log = JobLog()
        self.lots = 0
        self.lane: str | None = None
        self.changed = asyncio.Event()

    def change(self) -> None:
        """Wake whoever waits for this job."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool], patience: float) -> None:
        """Return when it holds, or when so many seconds have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not holds():
                    await self.changed.wait()


class Entries:
    """The entries of the jobs that were asked for last."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, JobEntry] = OrderedDict()

    def of(self, job_id: str) -> JobEntry:
        """The entry of the job; a new one of a job that is not known."""
        if (entry := self._jobs.get(job_id)) is None:
            entry = self._jobs[job_id] = JobEntry()
            while len(self._jobs) > KEPT_JOBS:
                self._jobs.popitem(last=False)
        else:
            self._jobs.move_to_end(job_id)
        return entry
