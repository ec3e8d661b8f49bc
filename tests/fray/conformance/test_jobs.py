"""One job: what it gives, what it raises, where it stands, and who is told."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import cloudpickle
import pytest

from tests.fray.conformance.conftest import LIMIT_S, elsewhere, here, in_this_machine, wait_for
from treadle.errors import RemoteError
from treadle.fray import Client, JobHandle, JobRequest, JobStatus, current_client

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Awkward(Exception):
    """Pickles well, and cannot be built again from what was pickled, by its own `__init__`."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} is not {right}")
        self.left = left


@dataclass(frozen=True)
class Frozen(Exception):
    """Takes no attributes once it is made."""

    shard: int


class Locked(Exception):
    """Cannot be pickled at all."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()


class OfOurs(ValueError):
    """Comes back as what it was."""


def fail(error: Callable[[], BaseException]) -> object:
    raise error()


def fail_in_turn() -> object:
    try:
        raise Frozen(7)
    except Frozen as error:
        group = ExceptionGroup("both", [Awkward(1, 2), error])
        group.add_note("after all")
        raise group from error


def fail_below(depth: int) -> object:
    if not depth:
        raise Locked("at the bottom")
    return current_client().submit(JobRequest("below", partial(fail_below, depth - 1))).result()


def reach(started: Path, gate: Path) -> str:
    started.touch()
    wait_for(gate)
    return "through"


@pytest.mark.parametrize("value", [None, 6, "six", {"a": [1, (2.5, b"x")]}, b"\0" * 3_000_000])
def test_a_job_gives_what_its_function_returns(client: Client, value: object) -> None:
    job: JobHandle[list[object]] = client.submit(JobRequest("give", partial(list, [value])))
    assert job.result(LIMIT_S) == [value]
    assert job.status() is JobStatus.SUCCEEDED
    assert job.wait() is JobStatus.SUCCEEDED


def test_functions_that_have_no_name_elsewhere_can_be_jobs(client: Client) -> None:
    factor = 7
    assert client.submit(JobRequest("lambda", lambda: 6 * factor)).result(LIMIT_S) == 42


def test_arguments_may_be_large(client: Client) -> None:
    job = client.submit(JobRequest("count", partial(bytes.count, b"\1" * 3_000_000, b"\1")))
    assert job.result(LIMIT_S) == 3_000_000


def test_several_may_submit_at_once(client: Client) -> None:
    results: SimpleQueue[int] = SimpleQueue()

    def submit(start: int) -> None:
        jobs = [client.submit(JobRequest("same", partial(abs, -start - n))) for n in range(20)]
        for job in jobs:
            results.put(job.result(LIMIT_S))

    threads = [threading.Thread(target=submit, args=(100 * place,)) for place in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(results.get() for _ in range(80)) == [100 * p + n for p in range(4) for n in range(20)]


def test_many_jobs_have_ids_of_their_own(client: Client) -> None:
    jobs = [client.submit(JobRequest("same", partial(abs, -number))) for number in range(200)]
    assert [job.result(LIMIT_S) for job in jobs] == list(range(200))
    assert len({job.job_id for job in jobs}) == 200


def test_an_error_is_raised_by_result_and_only_told_by_wait(client: Client) -> None:
    job = client.submit(JobRequest("fail", partial(fail, partial(OfOurs, "no such luck"))))
    assert job.wait(LIMIT_S) is JobStatus.FAILED
    with pytest.raises(OfOurs, match="no such luck"):
        job.result()
    with pytest.raises(OfOurs, match="no such luck"):
        job.wait(raise_on_failure=True)
    assert job.status() is JobStatus.FAILED


def test_the_end_of_an_interpreter_is_the_end_of_one_job(client: Client) -> None:
    job = client.submit(JobRequest("leave", partial(fail, partial(SystemExit, 3))))
    assert job.wait(LIMIT_S) is JobStatus.FAILED
    with pytest.raises(SystemExit):
        job.result()
    assert client.submit(JobRequest("next", partial(int, "1"))).result(LIMIT_S) == 1


@elsewhere
def test_an_error_from_elsewhere_brings_its_traceback(client: Client) -> None:
    with pytest.raises(ValueError, match="no") as caught:
        client.submit(JobRequest("fail", partial(fail, partial(ValueError, "no")))).result(LIMIT_S)
    trace = "".join(traceback.format_exception(caught.value))
    assert "in fail" in trace
    assert "raise error()" in trace


@elsewhere
def test_an_error_that_cannot_be_sent_is_told_in_words(client: Client) -> None:
    job = client.submit(JobRequest("fail", partial(fail, partial(Locked, "1 is not 2"))))
    assert job.wait(LIMIT_S) is JobStatus.FAILED
    with pytest.raises(RemoteError, match="1 is not 2") as caught:
        job.result()
    assert caught.value.kind == "Locked"
    assert "raise error()" in caught.value.__notes__[0]


def test_an_error_of_any_make_brings_all_it_has(client: Client) -> None:
    job = client.submit(JobRequest("fail", fail_in_turn))
    with pytest.raises(ExceptionGroup) as caught:
        job.result(LIMIT_S)
    [awkward, frozen] = caught.value.exceptions
    assert str(awkward) == "1 is not 2"
    assert vars(awkward) == {"left": 1}
    assert frozen == Frozen(7)
    assert caught.value.__notes__ == ["after all"]
    assert isinstance(caught.value.__cause__, Frozen)


def test_an_error_from_far_below_stays_small(client: Client) -> None:
    with pytest.raises(Locked if client.shares_memory else RemoteError) as caught:
        client.submit(JobRequest("deep", partial(fail_below, 12))).result(LIMIT_S)
    assert len("".join(traceback.format_exception(caught.value))) < 100_000


@here
def test_an_error_in_this_process_is_the_very_same(client: Client) -> None:
    error = Awkward(1, 2)
    with pytest.raises(Awkward) as caught:
        client.submit(JobRequest("fail", partial(fail, lambda: error))).result(LIMIT_S)
    assert caught.value is error


def test_the_status_follows_the_job(client: Client, tmp_path: Path) -> None:
    started, gate = tmp_path / "started", tmp_path / "gate"
    job = client.submit(JobRequest("slow", partial(reach, started, gate)))
    wait_for(started)
    assert job.status() is JobStatus.RUNNING
    gate.touch()
    assert job.result(LIMIT_S) == "through"
    assert job.status() is JobStatus.SUCCEEDED


def test_a_job_that_finds_no_place_is_pending(client: Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    places = [tmp_path / str(number) for number in range(client.max_workers)]
    busy = [client.submit(JobRequest("busy", partial(reach, each, gate))) for each in places]
    for each in places:
        wait_for(each)
    more = client.submit(JobRequest("more", partial(reach, tmp_path / "more", gate)))
    assert more.status() is JobStatus.PENDING
    gate.touch()
    assert [job.result(LIMIT_S) for job in (*busy, more)] == ["through"] * (client.max_workers + 1)


def test_waiting_has_a_limit_and_does_the_job_no_harm(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("slow", partial(reach, tmp_path / "started", tmp_path / "gate")))
    for wait in (job.wait, job.result):
        with pytest.raises(TimeoutError, match="slow"):
            wait(0.01)
    (tmp_path / "gate").touch()
    assert job.result(LIMIT_S) == "through"


def test_several_may_wait_for_one_job(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("slow", partial(reach, tmp_path / "started", tmp_path / "gate")))
    results: SimpleQueue[str] = SimpleQueue()
    threads = [threading.Thread(target=lambda: results.put(job.result(LIMIT_S))) for _ in range(4)]
    for each in threads:
        each.start()
    (tmp_path / "gate").touch()
    assert [results.get(timeout=LIMIT_S) for _ in threads] == ["through"] * 4


def test_callbacks_come_once_be_they_early_or_late(client: Client, tmp_path: Path) -> None:
    told: SimpleQueue[tuple[str, str]] = SimpleQueue()

    def tell(which: str, ended: JobHandle[Any]) -> None:
        told.put((which, ended.result()))

    job = client.submit(JobRequest("slow", partial(reach, tmp_path / "started", tmp_path / "gate")))
    job.add_done_callback(partial(tell, "early"))
    (tmp_path / "gate").touch()
    assert told.get(timeout=LIMIT_S) == ("early", "through")
    job.add_done_callback(partial(tell, "late"))
    assert told.get(timeout=LIMIT_S) == ("late", "through")
    assert told.empty()


def test_a_callback_is_given_the_handle_of_a_failed_job_too(client: Client) -> None:
    told: SimpleQueue[JobHandle[Any]] = SimpleQueue()
    job = client.submit(JobRequest("fail", partial(fail, partial(ValueError, "no"))))
    job.add_done_callback(told.put)
    ended = told.get(timeout=LIMIT_S)
    assert ended.job_id == job.job_id
    assert ended.status() is JobStatus.FAILED


@in_this_machine
def test_a_callback_that_raises_hurts_no_job(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no callback")

    job = client.submit(JobRequest("seven", partial(int, "7")))
    job.add_done_callback(fail)
    assert job.result(LIMIT_S) == 7
    job.add_done_callback(fail)
    assert "no callback" in caplog.text, "it is told"
    assert client.submit(JobRequest("eight", partial(int, "8"))).result(LIMIT_S) == 8
