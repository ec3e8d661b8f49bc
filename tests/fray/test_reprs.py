"""What jobs, actors and clients look like at a prompt."""

import re

import pytest

from treadle.fray import (
    ActorGroup,
    ActorHandle,
    ActorRequest,
    JobRequest,
    ThreadClient,
    create_actor_group,
    current_client,
)
from treadle.fray.processes import ProcessClient


@pytest.mark.parametrize("kind", [ThreadClient, ProcessClient])
def test_each_says_what_it_is(kind: type[ThreadClient]) -> None:
    with kind(2) as client:
        assert repr(client) == f"{kind.__name__}(max_workers=2)"
        job = client.submit(JobRequest("square", lambda: 9))
        assert re.fullmatch(r"<job square#1: (pending|running|succeeded)>", repr(job))
        job.result()
        assert repr(job) == "<job square#1: succeeded>"
        group: ActorGroup[list[int]] = create_actor_group(client, ActorRequest("list", list), 2)
        assert repr(group) == "<group of list-0#2, list-1#4>"
        assert repr(group[0]) == "<actor list-0#2>"


def test_a_job_sees_what_stands_for_its_client() -> None:
    with ProcessClient(1) as client:
        shown = client.submit(JobRequest("look", lambda: repr(current_client()))).result()
    assert shown == "<the client of this job, in another process>"


@pytest.mark.parametrize("kind", [ThreadClient, ProcessClient])
def test_a_prompt_may_look_at_an_actor(kind: type[ThreadClient]) -> None:
    with kind(1) as client:
        actor: ActorHandle[list[int]] = client.create_actor(ActorRequest("list", list))
        for name in ("_repr_html_", "__wrapped__", "_ipython_display_", "__len__", "__deepcopy__"):
            assert not hasattr(actor, name)
        with pytest.raises(AttributeError, match="only public methods can be called"):
            _ = actor._private
