"""What goes to where a job runs, and what cannot: values, environments, requests beyond what there is."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, Open, elsewhere, here
from treadle.errors import ArgumentError, NotSendableError, ResultTooLargeError
from treadle.fray import (
    ActorHandle,
    ActorRequest,
    Client,
    EnvironmentConfig,
    JobHandle,
    JobRequest,
    ResourceConfig,
    Travelling,
    current_client,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])

TENANT: Travelling[str] = Travelling("tenant of the conformance tests")


def ask_tenant() -> str:
    return TENANT.get() if TENANT.is_set else "nobody"


def ask_tenant_in_child() -> str:
    return current_client().submit(JobRequest("child", ask_tenant)).result()


def acquire(lock: threading.Lock) -> bool:
    with lock:
        return True


def environment(name: str) -> str | None:
    return os.environ.get(name)


def hand_out() -> list[JobHandle[int]]:
    return [current_client().submit(JobRequest("inner", int))]


class Asker:
    def tenant(self) -> str:
        return ask_tenant()

    def environment(self, name: str) -> str | None:
        return environment(name)


def read(name: str) -> str:
    return Path(name).read_text(encoding="utf-8")


def test_travelling_values_are_those_of_the_submitter(client: Client) -> None:
    with TENANT.use("blue"):
        jobs = [client.submit(JobRequest("ask", each)) for each in (ask_tenant, ask_tenant_in_child)]
    assert [job.result(LIMIT_S) for job in jobs] == ["blue", "blue"]
    assert client.submit(JobRequest("ask", ask_tenant)).result(LIMIT_S) == "nobody"


def test_travelling_values_of_a_call_are_those_of_its_caller(client: Client) -> None:
    with TENANT.use("red"):
        asker = client.create_actor(ActorRequest("asker", Asker))
    assert asker.tenant() == "nobody"
    with TENANT.use("blue"):
        assert asker.tenant() == "blue"


@here
def test_in_this_process_all_context_variables_are(client: Client) -> None:
    colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")

    def change() -> str:
        seen = colour.get()
        colour.set("changed")
        return seen

    token = colour.set("red")
    job = client.submit(JobRequest("look", change))
    colour.reset(token)
    assert job.result(LIMIT_S) == "red"
    assert colour.get() == "none"


@elsewhere
def test_what_cannot_be_sent_is_refused_at_once_and_named(client: Client) -> None:
    lock = threading.Lock()
    with pytest.raises(NotSendableError, match=r"job 'locked' .* argument .*lock"):
        client.submit(JobRequest("locked", partial(acquire, lock)))
    with pytest.raises(NotSendableError, match=r"actor 'locked' .*'lock'"):
        client.create_actor(ActorRequest("locked", lambda: acquire(lock)))
    assert client.submit(JobRequest("next", partial(int, "1"))).result(LIMIT_S) == 1


@here
def test_in_this_process_nothing_is_sent(client: Client) -> None:
    assert client.submit(JobRequest("locked", partial(acquire, threading.Lock()))).result(LIMIT_S)


@elsewhere
def test_a_result_that_cannot_be_sent_is_the_failure_of_its_job(client: Client) -> None:
    with pytest.raises(NotSendableError, match=r"lock.*; return plain values, such as a list, or write a"):
        client.submit(JobRequest("lock", threading.Lock)).result(LIMIT_S)


@elsewhere
def test_a_handle_of_a_job_is_no_result(client: Client) -> None:
    told = "send or return job.result"
    with pytest.raises(NotSendableError, match=told):
        client.submit(JobRequest("handle", hand_out)).result(LIMIT_S)
    job = client.submit(JobRequest("int", int))
    with pytest.raises(NotSendableError, match=told):
        client.submit(JobRequest("handle", partial(id, job)))


@elsewhere
def test_a_result_that_is_too_large_is_the_failure_of_its_job(open_client: Open) -> None:
    client = open_client(1, max_result_bytes=10_000)
    with pytest.raises(ResultTooLargeError, match="10,000"):
        client.submit(JobRequest("large", partial(bytes, 20_000))).result(LIMIT_S)
    assert len(client.submit(JobRequest("small", partial(bytes, 5_000))).result(LIMIT_S)) == 5_000


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (ResourceConfig(cpu=1000), r"cpu: 1,000 asked for, and there is 4"),
        (ResourceConfig(memory=1 << 50), r"memory in bytes: .* and there is 1,073,741,824 in all"),
        (ResourceConfig(gpu=3), r"gpu: 3 asked for"),
        (ResourceConfig(tags={"licence": 3}), r"tag 'licence': 3 asked for, and there is 2"),
        (ResourceConfig(tags={"license": 1}), r"unknown tag 'license'; did you mean 'licence'"),
    ],
)
def test_what_can_never_run_is_refused_at_once_with_what_there_is(
    client: Client, request_: ResourceConfig, told: str
) -> None:
    with pytest.raises(ArgumentError, match=rf"'huge'.*{told}"):
        client.submit(JobRequest("huge", int, resources=request_))
    with pytest.raises(ArgumentError, match=rf"'huge'.*{told}"):
        client.create_actor(ActorRequest("huge", int, resources=request_))


def test_what_there_is_can_be_asked_for(client: Client) -> None:
    there = client.resources()
    assert (there.cpu, there.tags["licence"]) == (4, 2)
    every = ResourceConfig(cpu=there.cpu, tags=there.tags)
    assert client.submit(JobRequest("all", partial(int, "1"), resources=every)).result(LIMIT_S) == 1


@here
def test_threads_refuse_an_environment_of_their_own(client: Client) -> None:
    wanted = EnvironmentConfig(env_vars={"COLOUR": "blue"})
    with pytest.raises(ArgumentError, match=r"job 'ask': environment: .*COLOUR"):
        client.submit(JobRequest("ask", partial(environment, "COLOUR"), environment=wanted))
    with pytest.raises(ArgumentError, match=r"actor 'ask': environment"):
        client.create_actor(ActorRequest("ask", int, environment=wanted))


@elsewhere
def test_a_client_has_an_environment_for_jobs_that_ask_for_none(open_client: Open) -> None:
    client = open_client(1, environment=EnvironmentConfig(env_vars={"TREADLE_TEST_COLOUR": "red"}))
    ask = partial(environment, "TREADLE_TEST_COLOUR")
    assert client.submit(JobRequest("ask", ask)).result(LIMIT_S) == "red"
    asker: ActorHandle[Asker] = client.create_actor(ActorRequest("asker", Asker))
    assert asker.environment("TREADLE_TEST_COLOUR") == "red"
    other = EnvironmentConfig(env_vars={"TREADLE_TEST_COLOUR": "blue"})
    assert client.submit(JobRequest("ask", ask, environment=other)).result(LIMIT_S) == "blue"
    asker = client.create_actor(ActorRequest("asker", Asker, environment=other))
    assert asker.environment("TREADLE_TEST_COLOUR") == "blue"


@elsewhere
def test_a_request_brings_its_environment(client: Client, tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("given")
    variables = EnvironmentConfig(env_vars={"TREADLE_TEST_COLOUR": "blue"})
    ask = partial(environment, "TREADLE_TEST_COLOUR")
    assert client.submit(JobRequest("ask", ask, environment=variables)).result(LIMIT_S) == "blue"
    assert client.submit(JobRequest("ask", ask)).result(LIMIT_S) is None, "jobs that ask for none"
    folder = EnvironmentConfig(working_dir=str(tmp_path))
    job = client.submit(JobRequest("read", partial(read, "given.txt"), environment=folder))
    assert job.result(LIMIT_S) == "given"
