"""What ends with a job that is terminated, and what does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import cloudpickle
import psutil
import pytest

from tests.fray.processes.helpers import LIMIT_S, gone, wait_for, wait_until, write
from treadle.fray import ActorRequest, JobRequest, JobStatus, ThreadClient, current_client, stop_requested
from treadle.fray.processes import ProcessClient

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def with_child(path: Path) -> None:
    child = subprocess.Popen(["sleep", "600"])
    write(path, f"{os.getpid()} {child.pid}")
    time.sleep(600)


def leave_child(path: Path) -> str:
    write(path, subprocess.Popen(["sleep", "600"]).pid)
    return "done"


def listen(path: Path) -> str:
    write(path, os.getpid())
    wait_until(stop_requested)
    return "heard"


def family(folder: Path, depth: int) -> str:
    if not depth:
        return listen(folder / "leaf")
    return current_client().submit(JobRequest("child", partial(family, folder, depth - 1))).result()


def go_deaf(path: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    write(path, os.getpid())
    threading.Event().wait()


def late(path: Path) -> str:
    """Hears the interruption, and returns as if nothing had been."""
    try:
        write(path, os.getpid())
        time.sleep(600)
    except KeyboardInterrupt:
        return "saved"
    return "slept"


def submit_and_wait(client: ProcessClient, path: Path) -> str:
    return client.submit(JobRequest("inner", partial(listen, path))).result()


class Deaf:
    def hang(self, path: Path) -> None:
        go_deaf(path)

    def pid(self) -> int:
        return os.getpid()


def test_what_it_has_started_ends_too(client: ProcessClient, tmp_path: Path) -> None:
    job = client.submit(JobRequest("with child", partial(with_child, tmp_path / "pids")))
    pids = [int(pid) for pid in wait_for(tmp_path / "pids").split()]
    job.terminate()
    assert job.wait(LIMIT_S) is JobStatus.STOPPED
    wait_until(lambda: all(map(gone, pids)))


def test_what_a_detached_job_has_started_is_left(client: ProcessClient, tmp_path: Path) -> None:
    job = client.submit(JobRequest("leave", partial(leave_child, tmp_path / "pid"), detached=True))
    assert job.result(LIMIT_S) == "done"
    child = psutil.Process(int(wait_for(tmp_path / "pid")))
    assert child.is_running()
    child.kill()


def test_a_stop_reaches_the_last_of_the_descendants(tmp_path: Path) -> None:
    with ProcessClient(1, grace=LIMIT_S) as client:
        job = client.submit(JobRequest("family", partial(family, tmp_path, 3)))
        wait_for(tmp_path / "leaf")
        job.terminate()
        assert job.result(LIMIT_S) == "heard"
        assert job.status() is JobStatus.SUCCEEDED


def test_a_stop_reaches_jobs_of_another_client(tmp_path: Path) -> None:
    with ProcessClient(1, grace=LIMIT_S) as processes, ThreadClient(1) as threads:
        job = threads.submit(JobRequest("outer", partial(submit_and_wait, processes, tmp_path / "pid")))
        wait_for(tmp_path / "pid")
        job.terminate()
        assert job.result(LIMIT_S) == "heard"


def test_a_job_that_returns_after_the_interruption_has_succeeded(
    client: ProcessClient, tmp_path: Path
) -> None:
    job = client.submit(JobRequest("late", partial(late, tmp_path / "pid")))
    pid = int(wait_for(tmp_path / "pid"))
    job.terminate()
    assert job.result(LIMIT_S) == "saved"
    assert job.status() is JobStatus.SUCCEEDED
    assert client.submit(JobRequest("pid", os.getpid)).result(LIMIT_S) != pid, (
        "an interrupted one is not used"
    )


def test_a_call_that_has_to_be_killed_takes_its_object_with_it(client: ProcessClient, tmp_path: Path) -> None:
    actor = client.create_actor(ActorRequest("deaf", Deaf, losses=0))
    pid = actor.pid()
    job = actor.submit("hang", tmp_path / "pid")
    wait_for(tmp_path / "pid")
    job.terminate()
    with pytest.raises(CancelledError):
        job.result(LIMIT_S)
    assert job.status() is JobStatus.STOPPED
    assert actor.pid() != pid
    assert actor.restarts == 1


def test_terminating_in_any_moment(client: ProcessClient) -> None:
    for place in range(12):
        job = client.submit(JobRequest("sleep", partial(time.sleep, 0.01)))
        time.sleep(place * 0.0015)
        job.terminate()
        assert job.wait(LIMIT_S) in (JobStatus.STOPPED, JobStatus.SUCCEEDED)
    assert client.submit(JobRequest("abs", partial(abs, -1))).result(LIMIT_S) == 1


def test_a_block_that_ctrl_c_ends_does_not_wait_for_a_detached_job(tmp_path: Path) -> None:
    client = ProcessClient(2, grace=LIMIT_S)
    with pytest.raises(KeyboardInterrupt), client:
        stays = client.submit(JobRequest("stays", partial(listen, tmp_path / "stays"), detached=True))
        ends = client.submit(JobRequest("ends", partial(listen, tmp_path / "ends")))
        wait_for(tmp_path / "ends"), wait_for(tmp_path / "stays")
        raise KeyboardInterrupt
    assert ends.result(0) == "heard"
    assert stays.status() is JobStatus.RUNNING
    stays.terminate()
    assert stays.result(LIMIT_S) == "heard"
