"""Where the object of an actor lives: a Ray actor that makes it, and makes the calls of its methods."""

from __future__ import annotations

from concurrent.futures import CancelledError
from functools import partial

import ray

from treadle.fray.parcel import pack_call
from treadle.fray.ray.inner_client import InnerClient
from treadle.fray.ray.reporter import reporter_of
from treadle.fray.ray.task_job import TaskJob
from treadle.fray.ray.tasks import carry
from treadle.fray.ray.ticket import Outcome, Ticket


class Host:
    """Takes one call at a time, in the order in which they came."""

    def __init__(self, make: bytes, ticket: Ticket) -> None:
        self._id = ticket.job_id
        self._reporter = reporter_of(ticket.board)
        ray.get(self._reporter.board.made.remote(self._id))
        self._made = self._carry(make, ticket)

    def call(self, call: bytes, ticket: Ticket) -> Outcome:
        """Make a packed call; where the object could not be made, the call fails as that did."""
        if self._made.packed is None or self._made.packed[:1] != b"=":
            return Outcome(self._made.packed)
        for each in (self._id, ticket.job_id):
            if each in self._reporter.stops:
                call = pack_call(each, partial(_refuse, each))
        return self._carry(call, ticket)

    def idle(self) -> None:
        """Returns once the calls before it have ended."""

    def _carry(self, call: bytes, ticket: Ticket) -> Outcome:
        job = TaskJob(ticket, self._reporter)
        return job.carry_out(call, InnerClient(job, carry))


def _refuse(terminated: str) -> None:
    raise CancelledError(f"{terminated} was terminated")
