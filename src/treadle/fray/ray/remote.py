"""What Ray runs in its workers: the task of a job, and where the object of an actor lives."""

from __future__ import annotations

from typing import Any

import ray

from treadle.fray.parcel import returned
from treadle.fray.ray.inner_client import InnerClient
from treadle.fray.ray.reporter import reporter_of
from treadle.fray.ray.task_job import TaskJob
from treadle.fray.ray.ticket import Opening, Outcome, Ticket


@ray.remote
def carry(call: bytes, packed_ticket: bytes) -> Outcome | bytes:
    """Make the packed call as the job of the ticket."""
    ticket = Ticket.unpacked(packed_ticket)
    job = TaskJob(ticket, reporter_of(ticket.board))
    if ticket.lane and not job.reporter.claim(ticket.job_id, ticket.lane):
        return Outcome(None)
    return job.carry_out(call, InnerClient(job, carry))


class Host:
    """A Ray actor that makes the object of an actor, and takes one call of it at a time, in order."""

    def __init__(self, make: bytes, ticket: Ticket, losses: int) -> None:
        self._reporter = reporter_of(ticket.board)
        ray.get(self._reporter.board.made.remote(ticket.job_id, losses))
        made = self._carry(make, ticket)
        self._made = made if isinstance(made, bytes) else made.packed or b""

    def call(self, call: bytes, packed_ticket: bytes) -> Outcome | bytes:
        """Make a packed call; where the object could not be made, the call fails as that did."""
        if not returned(self._made):
            return self._made
        return self._carry(call, Ticket.unpacked(packed_ticket))

    def idle(self) -> None:
        """Returns once the calls before it have ended."""

    def _carry(self, call: bytes, ticket: Ticket) -> Outcome | bytes:
        job = TaskJob(ticket, self._reporter)
        return job.carry_out(call, InnerClient(job, carry))


def new_host(opening: Opening) -> Any:
    """Start the host of an actor; it ends with whoever calls this, or by `ray.kill`."""
    host = ray.remote(Host).options(max_restarts=opening.losses, **opening.options)
    return host.remote(opening.make, opening.ticket, opening.losses)
