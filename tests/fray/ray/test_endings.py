"""How jobs and actors of a Ray cluster end, and what they look like at a prompt."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, wait_for, wait_until
from treadle.errors import ArgumentError, WorkerLostError
from treadle.fray import ActorHandle, ActorRequest, JobRequest, JobStatus, current_client, stop_requested
from treadle.fray.ray import RayClient

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(sys.modules[wait_for.__module__])


class Fragile:
    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def name(self) -> str:
        return "fragile"


def submit_late(started: Path) -> tuple[str, str]:
    """What becomes of a child that is submitted after the stop."""
    started.touch()
    wait_until(stop_requested)
    child = current_client().submit(JobRequest("child", int))
    status = child.wait(LIMIT_S)
    try:
        child.result()
    except CancelledError as error:
        return status.value, str(error).replace(child.job_id, "ID")
    return status.value, ""


def submit_wrongly() -> None:
    wrong: Any = int
    current_client().submit(wrong)


def shown_client() -> str:
    return repr(current_client())


def loss_of(actor: ActorHandle[Fragile]) -> str:
    with pytest.raises(WorkerLostError) as caught:
        actor.die()
    return str(caught.value)


def test_an_actor_whose_losses_are_used_up_says_so(client: RayClient) -> None:
    actor = client.create_actor(ActorRequest("frail", Fragile, losses=1))
    assert "the next call finds the actor made anew" in loss_of(actor)
    assert actor.name() == "fragile"
    assert "its losses=1 are used up: create another" in loss_of(actor)
    told = f"^actor {actor.actor_id} was lost 2 times, and its losses=1 are used up: create another$"
    for _ in range(2):
        with pytest.raises(WorkerLostError, match=told):
            actor.name()


def test_calls_of_a_terminated_actor_are_stopped_by_whichever_handle(client: RayClient) -> None:
    actor = client.create_actor(ActorRequest("ended", Fragile, losses=0))
    assert actor.name() == "fragile"
    other: ActorHandle[Fragile] = pickle.loads(pickle.dumps(actor))
    actor.terminate()
    wait_until(lambda: actor.submit("name").wait(LIMIT_S) is JobStatus.STOPPED)
    for each in (actor, other):
        call = each.submit("name")
        with pytest.raises(CancelledError, match=f"job {call.job_id} was terminated"):
            call.result(LIMIT_S)


def test_a_child_of_a_stopped_job_is_stopped(client: RayClient, tmp_path: Path) -> None:
    parent = client.submit(JobRequest("parent", partial(submit_late, tmp_path / "started")))
    wait_for(tmp_path / "started")
    parent.terminate()
    assert parent.result(LIMIT_S) == ("stopped", "job ID was terminated")


def test_what_is_no_request_is_refused_everywhere(client: RayClient) -> None:
    wrong: Any = Fragile
    with pytest.raises(ArgumentError, match="expected a JobRequest"):
        client.submit(wrong)
    with pytest.raises(ArgumentError, match="expected an ActorRequest"):
        client.create_actor(wrong)
    with pytest.raises(ArgumentError, match="expected a JobRequest"):
        client.submit(JobRequest("wrong", submit_wrongly)).result(LIMIT_S)


def test_each_says_what_it_is(client: RayClient) -> None:
    assert repr(client) == "RayClient(max_workers=2)"
    job = client.submit(JobRequest("look", shown_client))
    assert job.result(LIMIT_S) == "<the client of this job, in another process>"
    assert repr(job) == f"<job {job.job_id}: succeeded>"
    with pytest.raises(TypeError, match=r"send or return job\.result"):
        pickle.dumps(job)
