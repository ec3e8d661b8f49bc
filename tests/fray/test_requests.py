"""Requests, and what people are used to from other pools."""

from functools import partial
from typing import Any

import pytest

from treadle.errors import ArgumentError
from treadle.fray import ActorRequest, Client, FrayClient, JobRequest, ThreadClient, current_client, job_map
from treadle.fray.processes import ProcessClient


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((int, "x"), {}, r"JobRequest: name: expected text, .*: write JobRequest\(\"name\", fn\)"),
        (("x", 3), {}, "JobRequest 'x': fn: expected a function, got 3: write"),
        (("x", int, 3), {}, r"resources: expected ResourceConfig\(...\), got 3: .*partial\(fn, 3\)"),
        (("x", int), {"environment": {"A": "b"}}, r"environment: expected EnvironmentConfig\(...\), got"),
        (("x", int), {"losses": -1}, "losses: expected a whole number of at least 0, got -1"),
        (("x", int), {"losses": True}, "losses: .*, got True"),
        (("x", int), {"detached": 1}, "detached: expected True or False, got 1"),
    ],
)
def test_a_job_request_says_what_is_wrong(given: Any, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        JobRequest(*given, **options)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((list, "x"), {}, r"ActorRequest: name: expected text, .*: write ActorRequest\(\"name\", Counter\)"),
        (("x", 3), {}, "ActorRequest 'x': make: expected a function, got 3"),
        (("x", list, 5), {}, r"resources: .*, got 5: .*partial\(Counter, 5\)"),
        (("x", list), {"losses": 0.5}, "losses: .*, got 0.5"),
    ],
)
def test_an_actor_request_says_what_is_wrong(given: Any, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ActorRequest(*given, **options)


def hand_over_nonsense() -> list[str]:
    client: Any = current_client()
    told = []
    for take in (client.submit, client.create_actor):
        try:
            take(int)
        except ArgumentError as error:
            told.append(str(error))
    return told


@pytest.mark.parametrize("kind", [ThreadClient, ProcessClient])
def test_a_client_takes_requests_alone(kind: type[ThreadClient]) -> None:
    with kind(1) as client:
        job, actor = client.submit(JobRequest("inside", hand_over_nonsense)).result()
        assert "expected a JobRequest, got <class 'int'>" in job
        assert 'JobRequest("name", partial(fn, 3))' in job
        assert "expected an ActorRequest, got <class 'int'>" in actor
        given: Any = abs
        with pytest.raises(ArgumentError, match=r'submit\(JobRequest\("name", fn\)\)'):
            client.submit(given)
        with pytest.raises(ArgumentError, match=r'create_actor\(ActorRequest\("name", Counter\)\)'):
            client.create_actor(given)


def test_a_map_wants_a_client_and_not_its_name() -> None:
    wrong: Any = "processes"
    with pytest.raises(ArgumentError, match=r"client: expected a client, .*FrayClient\('processes'\)"):
        job_map(abs, [1], client=wrong)
    wrong = 2
    with pytest.raises(ArgumentError, match=r"client: expected a client, such as ProcessClient\(2\), got 2"):
        job_map(abs, [1], client=wrong)


@pytest.mark.parametrize(("given", "options"), [((2,), {}), (("processes",), {"max_workers": 2})])
def test_a_number_of_workers_goes_elsewhere(given: Any, options: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"FrayClient: expected the name .*treadle.toml.*ProcessClient\(2"
    ):
        FrayClient(*given, **options)


def test_arguments_are_bound() -> None:
    with ThreadClient(1) as threads:
        client: Client = threads
        assert client.submit(JobRequest("abs", partial(abs, -3))).result() == 3
