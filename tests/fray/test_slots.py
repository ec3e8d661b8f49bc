"""The threads behind the jobs: reused, never more than they should be, and gone when idle."""

import gc
import random
import subprocess
import sys
import threading
import time
import weakref
from functools import partial

import pytest

from treadle.fray import JobRequest, ThreadClient, slots

SEED = 11


@pytest.fixture
def long_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle threads stay for longer than any test runs."""
    monkeypatch.setattr(slots, "KEEP_ALIVE_S", 600.0)


def thread_of_a_job(client: ThreadClient) -> threading.Thread:
    return client.submit(JobRequest("who", threading.current_thread)).result()


@pytest.mark.usefixtures("long_lived")
def test_a_thread_takes_the_next_job() -> None:
    with ThreadClient(1) as client:
        assert len({thread_of_a_job(client) for _ in range(20)}) == 1


def test_an_idle_client_holds_no_thread() -> None:
    with ThreadClient(8) as client:
        jobs = [client.submit(JobRequest("x", threading.current_thread)) for _ in range(20)]
        for thread in {job.result() for job in jobs}:
            thread.join(30)
            assert not thread.is_alive()
        assert thread_of_a_job(client) not in {job.result() for job in jobs}


@pytest.mark.usefixtures("long_lived")
def test_shutting_down_sends_idle_threads_away_at_once() -> None:
    with ThreadClient(4) as client:
        threads = {thread_of_a_job(client) for _ in range(20)}
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.usefixtures("long_lived")
def test_a_burst_opens_no_more_threads_than_workers() -> None:
    with ThreadClient(3) as client:
        jobs = [client.submit(JobRequest("x", threading.current_thread)) for _ in range(5_000)]
        assert len({job.result() for job in jobs}) <= 3


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("long_lived")
def test_threads_that_took_the_place_of_parked_ones_do_not_pile_up() -> None:
    """A job deep down parks all above it; when they go on, their stand-ins are too many."""
    seen: set[threading.Thread] = set()
    client = ThreadClient(2)

    def nest(depth: int) -> None:
        seen.add(threading.current_thread())
        if depth:
            client.submit(JobRequest("inner", partial(nest, depth - 1))).result()

    client.submit(JobRequest("outer", partial(nest, 50))).result()
    assert len(seen) == 51
    while sum(each.is_alive() for each in seen) > 2:
        time.sleep(0.001)
    client.shutdown()


def test_an_idle_thread_keeps_nothing_of_its_last_job() -> None:
    """What a job closes over can be gigabytes."""

    class Large:
        def use(self) -> None: ...

    with ThreadClient(1) as client:
        large = Large()
        gone = weakref.ref(large)
        handle = client.submit(JobRequest("large", large.use))
        handle.result()
        client.submit(JobRequest("next", Large().use)).result()
        del large
        gc.collect()
        assert gone() is None


def tree(client: ThreadClient, seed: int, depth: int) -> int:
    """Submit a few children of the same kind and wait for them; some fail, some are stopped."""
    chance = random.Random(seed)
    children = [
        client.submit(JobRequest("child", partial(tree, client, chance.randrange(10**9), depth - 1)))
        for _ in range(chance.randrange(4) if depth else 0)
    ]
    if children and chance.random() < 0.2:
        chance.choice(children).terminate()
    if chance.random() < 0.1:
        raise ValueError("as planned")
    for child in children:
        child.wait()
    return len(children)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_slot_is_lost_or_made_whatever_happens_at_once(workers: int) -> None:
    """Several threads submit trees of jobs; then the slots are counted."""
    client = ThreadClient(workers)

    def submit_many(seed: int) -> None:
        jobs = [client.submit(JobRequest("tree", partial(tree, client, seed + n, 3))) for n in range(20)]
        for job in jobs:
            job.wait()

    submitters = [threading.Thread(target=submit_many, args=(SEED + 100 * number,)) for number in range(4)]
    for each in submitters:
        each.start()
    for each in submitters:
        each.join()
    _count_slots(client, workers)
    client.shutdown()


def _count_slots(client: ThreadClient, workers: int) -> None:
    """`workers` jobs meet, so no fewer run at once; no moment sees more."""
    together, lock, running, most = threading.Barrier(workers), threading.Lock(), 0, 0

    def body() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(30)
        with lock:
            running -= 1

    for job in [client.submit(JobRequest("meet", body)) for _ in range(4 * workers)]:
        job.result()
    assert most == workers


def test_the_child_of_a_fork_can_submit_though_the_idle_threads_are_not_there() -> None:
    """Processes that a job forks have the client of the job, and none of its threads."""
    code = (
        "import os\n"
        "from treadle.fray import JobRequest, ThreadClient, current_client\n"
        "def ask():\n"
        "    return current_client().submit(JobRequest('inner', lambda: 7)).result(20)\n"
        "def fork():\n"
        "    if (child := os.fork()) == 0:\n"
        "        os._exit(0 if ask() == ask() == 7 else 1)\n"
        "    return os.waitpid(child, 0)[1]\n"
        "client = ThreadClient(2)\n"
        "client.submit(JobRequest('warm', lambda: None)).result()\n"
        "assert client.submit(JobRequest('outer', fork)).result() == 0\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if client.submit(JobRequest('own', lambda: 7)).result(20) == 7 else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert client.submit(JobRequest('own', lambda: 7)).result(20) == 7\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)
