"""Jobs as threads: bounded, cooperative, and never deadlocked by their own children."""

import asyncio
import contextvars
import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

import pytest

from treadle.errors import ArgumentError
from treadle.fray import (
    JobHandle,
    JobRequest,
    JobStatus,
    ThreadClient,
    current_client,
    set_current_client,
    stop_requested,
    stopper,
)
from treadle.kernel import carry

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


def test_a_stopper_asks_its_own_job_from_any_thread_and_at_any_time() -> None:
    """A heartbeat that finds its lease lost knows nothing of the job, and may come late."""
    stoppers: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def body() -> None:
        stoppers.put(stopper())
        while not stop_requested():
            time.sleep(0.001)
        raise RuntimeError("stopped")

    with ThreadClient(2) as client:
        job, other = (client.submit(JobRequest(name, body)) for name in ("one", "other"))
        for _ in range(2):
            stop = stoppers.get()
            stop()
        assert [job.wait(), other.wait()] == [JobStatus.STOPPED] * 2
        stop()
    stopper()()
    assert not stop_requested()


def test_a_job_that_has_ended_is_left_alone_by_terminate() -> None:
    """A stop that comes late must not make a failure look like something that was wanted."""
    with ThreadClient(1) as client:
        job = client.submit(JobRequest("fail", lambda: 1 // 0))
        job.wait()
        job.terminate()
        assert job.status() is JobStatus.FAILED


def test_waiting_has_a_limit() -> None:
    gate = threading.Event()
    with ThreadClient(1) as client:
        job = client.submit(JobRequest("slow", gate.wait))
        with pytest.raises(TimeoutError, match="slow#1"):
            job.wait(0.01)
        gate.set()


def test_a_client_that_was_shut_down_takes_no_jobs() -> None:
    client = ThreadClient(1)
    client.shutdown()
    with pytest.raises(ArgumentError, match="shut down"):
        client.submit(JobRequest("late", lambda: None))


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers: object) -> None:
    with pytest.raises(ArgumentError, match="max_workers"):
        ThreadClient(workers)  # type: ignore[arg-type]


def test_a_pending_child_of_a_stopped_job_never_starts() -> None:
    """Else stopping a job that has queued a hundred children waits for all of them."""
    started, seen = threading.Event(), list[int]()
    client = ThreadClient(1)

    def child(number: int) -> None:
        seen.append(number)
        started.set()
        while not stop_requested():
            time.sleep(0.001)

    def parent() -> None:
        jobs = [client.submit(JobRequest("child", partial(child, number))) for number in range(5)]
        for each in jobs:
            each.wait()

    job = client.submit(JobRequest("parent", parent))
    started.wait()
    job.terminate()
    job.wait(20)
    assert seen == [0]


def test_a_job_that_finds_no_thread_for_its_child_fails_and_the_child_still_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The slot and the child must not be lost together, or everything behind them waits for ever."""
    client = ThreadClient(1)
    children: list[JobHandle[int]] = []

    def parent() -> None:
        children.append(client.submit(JobRequest("child", lambda: 7)))

        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            children[0].result()

    with pytest.raises(RuntimeError, match="can't start new thread"):
        client.submit(JobRequest("parent", parent)).result(20)
    assert children[0].result(20) == 7
    assert client.submit(JobRequest("next", lambda: 8)).result(20) == 8


@pytest.mark.timeout(20)
def test_a_thread_of_a_job_that_waits_for_children_gives_up_the_slot_of_the_job() -> None:
    """`asyncio.to_thread` waits elsewhere under the job's context, while the job waits for that thread."""
    client = ThreadClient(1)

    def wait_for_child() -> int:
        return client.submit(JobRequest("child", lambda: 7)).result()

    async def parent() -> int:
        return sum(await asyncio.gather(*(asyncio.to_thread(wait_for_child) for _ in range(3))))

    for _ in range(3):
        assert client.submit(JobRequest("parent", lambda: asyncio.run(parent()))).result() == 21


@pytest.mark.timeout(20)
def test_a_thread_that_waits_beyond_the_end_of_its_job_leaves_the_slots_right() -> None:
    """A slot counted twice would let two jobs run where one may."""
    gate, waiting = threading.Event(), threading.Event()
    client, other = ThreadClient(1), ThreadClient(1)
    slow = other.submit(JobRequest("slow", gate.wait))

    def wait_for_slow() -> None:
        waiting.set()
        slow.wait()

    left: list[threading.Thread] = []

    def leave_a_thread() -> None:
        left.append(threading.Thread(target=carry(wait_for_slow)))
        left[0].start()
        waiting.wait()
        time.sleep(0.05)

    client.submit(JobRequest("leaving", leave_a_thread)).result()
    running, most = 0, 0

    def body() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        gate.set()
        left[0].join()
        time.sleep(0.01)
        running -= 1

    for job in [client.submit(JobRequest("body", body)) for _ in range(4)]:
        job.result()
    assert most == 1


@pytest.mark.timeout(60)
def test_two_thousand_jobs_may_wait_for_each_other_in_a_chain() -> None:
    """Depth is no limit: neither of waiting, nor of asking all of them to stop."""
    depth, client, asked = 2_000, ThreadClient(1), list[bool]()
    bottom, gate = threading.Event(), threading.Event()

    def nested(below: int) -> int:
        if not below:
            bottom.set()
            gate.wait()
            asked.append(stop_requested())
            return 0
        return 1 + client.submit(JobRequest("nested", partial(nested, below - 1))).result()

    job = client.submit(JobRequest("nested", partial(nested, depth)))
    bottom.wait()
    job.terminate()
    gate.set()
    assert job.result() == depth
    assert asked == [True]


@pytest.mark.timeout(60)
def test_a_job_that_submits_the_next_and_so_on_keeps_none_of_them() -> None:
    client, done, seen = ThreadClient(1), threading.Event(), list[weakref.ref[object]]()

    def tick(left: int) -> None:
        if not left:
            done.set()
            return
        seen.append(weakref.ref(client.submit(JobRequest("tick", partial(tick, left - 1)))))

    client.submit(JobRequest("tick", partial(tick, 3_000)))
    done.wait()
    client.shutdown()
    gc.collect()
    assert sum(each() is not None for each in seen) < 10


def test_whoever_waits_for_a_pending_job_hears_at_once_that_it_was_stopped() -> None:
    gate, told = threading.Event(), SimpleQueue[JobStatus]()
    client = ThreadClient(1)
    blocker = client.submit(JobRequest("blocker", gate.wait))
    waiting = client.submit(JobRequest("waiting", lambda: None))
    threads = [threading.Thread(target=lambda: told.put(waiting.wait(20))) for _ in range(2)]
    for each in threads:
        each.start()
    waiting.terminate()
    assert [told.get(timeout=20) for _ in threads] == [JobStatus.STOPPED] * 2
    gate.set()
    blocker.result()
    client.shutdown()


def test_a_child_that_raises_when_its_parent_was_asked_is_stopped_too() -> None:
    started, children = threading.Event(), list[JobHandle[None]]()
    client = ThreadClient(1)

    def child() -> None:
        started.set()
        while not stop_requested():
            time.sleep(0.001)
        raise RuntimeError("stopped")

    def parent() -> None:
        children.append(client.submit(JobRequest("child", child)))
        children[0].wait()

    job = client.submit(JobRequest("parent", parent))
    started.wait()
    job.terminate()
    assert job.wait(20) is JobStatus.SUCCEEDED
    assert children[0].status() is JobStatus.STOPPED


def test_a_job_can_shut_its_own_client_down() -> None:
    client = ThreadClient(1)

    def parent() -> list[JobStatus]:
        other = client.submit(JobRequest("other", lambda: None))
        below = client.submit(JobRequest("below", client.shutdown))
        return [other.wait(20), below.wait(20)]

    assert client.submit(JobRequest("parent", parent)).result(20) == [JobStatus.SUCCEEDED] * 2
    with pytest.raises(ArgumentError, match="shut down"):
        client.submit(JobRequest("late", lambda: None))


def test_what_is_submitted_while_the_client_is_shut_down_is_done_or_refused() -> None:
    for _ in range(50):
        client, together, jobs = ThreadClient(2), threading.Barrier(2), list[JobHandle[int]]()

        def submit(
            client: ThreadClient = client,
            together: threading.Barrier = together,
            jobs: list[JobHandle[int]] = jobs,
        ) -> None:
            together.wait(20)
            with suppress(ArgumentError):
                while True:
                    jobs.append(client.submit(JobRequest("one", lambda: 1)))

        thread = threading.Thread(target=submit)
        thread.start()
        together.wait(20)
        client.shutdown()
        thread.join()
        assert {job.status() for job in jobs} <= {JobStatus.SUCCEEDED}
