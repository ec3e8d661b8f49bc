"""Jobs as threads: bounded, cooperative, and never deadlocked by their own children."""

import contextvars
import threading
import time
from concurrent.futures import CancelledError

import pytest

from treadle.errors import ArgumentError, UsageError
from treadle.fray import (
    JobRequest,
    JobStatus,
    ThreadClient,
    current_client,
    set_current_client,
    stop_requested,
)

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


def test_result_and_status_of_a_job() -> None:
    with ThreadClient(1) as client:
        job = client.submit(JobRequest("six", lambda: 2 * 3))
        assert job.result() == 6
        assert job.status() is JobStatus.SUCCEEDED


def test_an_error_is_raised_by_result_and_only_told_by_wait() -> None:
    def fail() -> None:
        raise ValueError("no")

    with ThreadClient(1) as client:
        job = client.submit(JobRequest("fail", fail))
        assert job.wait() is JobStatus.FAILED
        with pytest.raises(ValueError, match="no"):
            job.result()
        with pytest.raises(ValueError, match="no"):
            job.wait(raise_on_failure=True)


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_jobs_run_at_once_than_there_are_workers(workers: int) -> None:
    running, most, lock = 0, 0, threading.Lock()

    together = threading.Barrier(workers)

    def body() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(20)
        with lock:
            running -= 1

    with ThreadClient(workers) as client:
        for job in [client.submit(JobRequest(str(place), body)) for place in range(12)]:
            job.result()
    assert most == workers


def test_jobs_start_in_the_order_in_which_they_came() -> None:
    seen: list[int] = []
    with ThreadClient(1) as client:
        for job in [client.submit(JobRequest(str(n), lambda n=n: seen.append(n))) for n in range(50)]:  # type: ignore[misc]
            job.wait()
    assert seen == list(range(50))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_may_wait_for_children_on_the_same_client(workers: int) -> None:
    """The commonest deadlock of bounded pools: the parent holds the slot that its child needs."""
    client = ThreadClient(workers)

    def tree(depth: int) -> int:
        if depth == 0:
            return 1
        jobs = [client.submit(JobRequest("child", lambda: tree(depth - 1))) for _ in range(2)]
        return sum(job.result() for job in jobs)

    assert client.submit(JobRequest("root", lambda: tree(4))).result() == 16
    client.shutdown()


def test_context_variables_are_those_of_the_submitter_and_changes_stay_inside() -> None:
    def body() -> str:
        seen = COLOUR.get()
        COLOUR.set("changed")
        return seen

    with ThreadClient(2) as client:
        token = COLOUR.set("red")
        jobs = [client.submit(JobRequest("look", body)) for _ in range(4)]
        COLOUR.reset(token)
        assert [job.result() for job in jobs] == ["red"] * 4
    assert COLOUR.get() == "none"


def test_the_current_client_inside_a_job_is_the_submitting_one() -> None:
    with ThreadClient(1) as client, ThreadClient(1) as other, set_current_client(other):
        assert client.submit(JobRequest("ask", current_client)).result() is client
        assert current_client() is other


def test_no_current_client_explains_itself() -> None:
    with pytest.raises(UsageError, match="set_current_client"):
        current_client()


def test_callbacks_come_once_also_when_added_late() -> None:
    seen: list[str] = []
    with ThreadClient(1) as client:
        job = client.submit(JobRequest("one", lambda: None))
        job.wait()
        job.add_done_callback(lambda ended: seen.append(ended.job_id))
    assert seen == [job.job_id]


def test_a_pending_job_that_is_terminated_never_starts() -> None:
    gate, seen = threading.Event(), list[str]()
    client = ThreadClient(1)
    blocker = client.submit(JobRequest("blocker", gate.wait))
    waiting = client.submit(JobRequest("waiting", lambda: seen.append("ran")))
    waiting.terminate()
    gate.set()
    blocker.result()
    assert waiting.wait() is JobStatus.STOPPED
    with pytest.raises(CancelledError):
        waiting.result()
    client.shutdown()
    assert not seen


def test_a_running_job_is_asked_to_stop_and_so_are_its_children() -> None:
    started = threading.Event()
    client = ThreadClient(1)

    def child() -> None:
        started.set()
        while not stop_requested():
            time.sleep(0.001)
        raise RuntimeError("stopped")

    def parent() -> None:
        client.submit(JobRequest("child", child)).result()

    job = client.submit(JobRequest("parent", parent))
    started.wait()
    job.terminate()
    assert job.wait() is JobStatus.STOPPED
    assert not stop_requested()


def test_waiting_has_a_limit() -> None:
    gate = threading.Event()
    with ThreadClient(1) as client:
        job = client.submit(JobRequest("slow", gate.wait))
        with pytest.raises(TimeoutError, match="slow#1"):
            job.wait(0.01)
        gate.set()


def test_an_idle_client_holds_no_thread() -> None:
    with ThreadClient(8) as client:
        for job in [client.submit(JobRequest("x", lambda: None)) for _ in range(20)]:
            job.wait()
        for thread in threading.enumerate():
            if thread.name == "treadle-job":
                thread.join(5)
                assert not thread.is_alive()


def test_a_client_that_was_shut_down_takes_no_jobs() -> None:
    client = ThreadClient(1)
    client.shutdown()
    with pytest.raises(ArgumentError, match="shut down"):
        client.submit(JobRequest("late", lambda: None))


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers: object) -> None:
    with pytest.raises(ArgumentError, match="max_workers"):
        ThreadClient(workers)  # type: ignore[arg-type]
