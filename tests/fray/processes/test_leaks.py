"""After many jobs, and many killed workers, there are no more files, threads and processes than before."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from tests.fray.processes.helpers import (
    LIMIT_S,
    children,
    open_files,
    treadle_threads,
    wait_until,
)
from treadle.errors import WorkerLostError
from treadle.fray import ActorHandle, ActorRequest, JobRequest, current_client
from treadle.fray.processes import ProcessClient
from treadle.fray.processes import pool as pool_module

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def files_here() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def fan_out(count: int) -> int:
    client = current_client()
    jobs = [client.submit(JobRequest("child", partial(abs, -n))) for n in range(count)]
    return sum(job.result() for job in jobs)


class Big:
    """Something whose life can be followed."""


def hold(_: Any) -> int:
    return sum(type(each).__name__ == "Big" for each in gc.get_objects())


def test_nothing_is_left_of_a_client() -> None:
    files = open_files()
    with ProcessClient(3) as client:
        actor: ActorHandle[list[int]] = client.create_actor(ActorRequest("list", list))
        actor.append(1)
        jobs = [client.submit(JobRequest("abs", partial(abs, -n))) for n in range(50)]
        assert [job.result(LIMIT_S) for job in jobs] == list(range(50))
    assert not children()
    wait_until(lambda: not treadle_threads())
    wait_until(lambda: open_files() <= files)


def test_files_do_not_grow_with_jobs() -> None:
    with ProcessClient(2) as client:
        client.submit(JobRequest("fan out", partial(fan_out, 4))).result(LIMIT_S)
        before = open_files()
        for _ in range(20):
            jobs = [client.submit(JobRequest("abs", partial(abs, -n))) for n in range(100)]
            assert [job.result(LIMIT_S) for job in jobs] == list(range(100))
        assert client.submit(JobRequest("fan out", partial(fan_out, 200))).result(LIMIT_S) == 19900
        # Idle ones beyond the number of places were ended, so these are no more than before.
        wait_until(lambda: open_files() <= before)
        assert client.submit(JobRequest("files", files_here)).result(LIMIT_S) < 20


def test_nothing_is_left_of_killed_workers() -> None:
    files = open_files()
    with ProcessClient(2) as client:
        jobs = [client.submit(JobRequest("die", partial(die, n))) for n in range(40)]
        for job in jobs:
            with pytest.raises(WorkerLostError):
                job.result(LIMIT_S)
        assert not children()
        wait_until(lambda: open_files() <= files)
        assert client.submit(JobRequest("abs", partial(abs, -1))).result(LIMIT_S) == 1


def test_idle_workers_end_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "KEEP_ALIVE_S", 0.05)
    files = open_files()
    with ProcessClient(2) as client:
        jobs = [client.submit(JobRequest("abs", partial(abs, -n))) for n in range(4)]
        assert [job.result(LIMIT_S) for job in jobs] == [0, 1, 2, 3]
        wait_until(lambda: not children() and open_files() <= files)
        wait_until(lambda: "treadle-workers" not in treadle_threads())
        assert client.submit(JobRequest("abs", partial(abs, -1))).result(LIMIT_S) == 1
        wait_until(lambda: not children() and open_files() <= files)


def test_a_worker_keeps_nothing_of_a_job(client: ProcessClient) -> None:
    for _ in range(3):
        assert client.submit(JobRequest("hold", partial(hold, Big()))).result(LIMIT_S) == 1


def test_the_handle_keeps_nothing_but_the_result(client: ProcessClient) -> None:
    job = client.submit(JobRequest("len", partial(len, b"x" * 10_000_000)))
    assert job.result(LIMIT_S) == 10_000_000
    assert job.call == b""  # type: ignore[attr-defined]
    gone = weakref.ref(job)
    del job
    wait_until(lambda: gone() is None)


def test_large_things_go_through(client: ProcessClient) -> None:
    data = os.urandom(30_000_000)
    assert client.submit(JobRequest("echo", partial(bytes, data))).result(LIMIT_S) == data


def test_threads_do_not_grow() -> None:
    before = threading.active_count()
    with ProcessClient(2) as client:
        for _ in range(200):
            client.submit(JobRequest("abs", partial(abs, -1))).result(LIMIT_S)
        assert len(treadle_threads()) <= 4
        assert threading.active_count() <= before + 4
