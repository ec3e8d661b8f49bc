"""The Ray task of a job."""

from __future__ import annotations

import ray

from treadle.fray.ray.inner_client import InnerClient
from treadle.fray.ray.reporter import reporter_of
from treadle.fray.ray.task_job import TaskJob
from treadle.fray.ray.ticket import Outcome, Ticket


@ray.remote
def carry(call: bytes, ticket: Ticket) -> Outcome:
    """Make the packed call as the job of the ticket."""
    job = TaskJob(ticket, reporter_of(ticket.board))
    if ticket.lane and not job.reporter.claim(ticket.job_id, ticket.lane):
        return Outcome(None)
    return job.carry_out(call, InnerClient(job, carry))
