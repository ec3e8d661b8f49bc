"""Ending jobs: those that wait, those that listen, those that sleep and those that do not want to."""

from __future__ import annotations

import os
import random
import sys
import time
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import cloudpickle
import psutil
import pytest

from tests.fray.conformance.conftest import LIMIT_S, Open, elsewhere, wait_for, wait_until
from treadle.fray import Client, JobRequest, JobStatus, current_client, stop_requested, stopper, wait_all

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def through(started: Path, gate: Path) -> str:
    started.touch()
    wait_for(gate)
    return "through"


def listen(started: Path) -> str:
    started.touch()
    wait_until(stop_requested)
    return "saved"


def listen_and_raise(started: Path) -> None:
    listen(started)
    raise RuntimeError("stopped as asked")


def stop_by_itself() -> str:
    stopper()()
    wait_until(stop_requested)
    return "stopped"


def sleep(started: Path, unwound: Path) -> None:
    try:
        started.touch()
        time.sleep(600)
    finally:
        unwound.touch()


def fall(started: Path) -> None:
    try:
        started.touch()
        time.sleep(600)
    except KeyboardInterrupt:
        raise ValueError("half done")  # noqa: B904 - as people write it


def wait_for_child(folder: Path) -> None:
    current_client().submit(JobRequest("child", partial(cancel_here, folder / "child"))).result()


def cancel_here(started: Path) -> None:
    listen(started)
    raise CancelledError("here")


def ignore_all(started: Path) -> None:
    started.write_text(str(os.getpid()))
    started.rename(started.with_name("written"))
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            continue


def brief(number: int) -> int:
    end = time.monotonic() + 0.01
    while time.monotonic() < end and not stop_requested():
        time.sleep(0.001)
    return number


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def well(client: Client) -> bool:
    jobs = [client.submit(JobRequest("next", partial(abs, -n))) for n in range(2 * client.max_workers)]
    return [job.result(LIMIT_S) for job in jobs] == list(range(len(jobs)))


def test_a_pending_job_never_begins(open_client: Open, tmp_path: Path) -> None:
    client = open_client(1)
    first = client.submit(JobRequest("first", partial(through, tmp_path / "first", tmp_path / "gate")))
    wait_for(tmp_path / "first")
    second = client.submit(JobRequest("second", partial(through, tmp_path / "second", tmp_path / "gate")))
    second.terminate()
    assert second.wait(LIMIT_S) is JobStatus.STOPPED, "while the first still runs"
    (tmp_path / "gate").touch()
    assert first.result(LIMIT_S) == "through"
    with pytest.raises(CancelledError, match=f"job {second.job_id} was terminated"):
        second.result()
    with pytest.raises(CancelledError):
        second.wait(raise_on_failure=True)
    assert well(client)
    assert not (tmp_path / "second").exists()


def test_a_running_job_is_asked_and_may_end_well(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("listen", partial(listen, tmp_path / "started")))
    wait_for(tmp_path / "started")
    job.terminate()
    job.terminate()
    assert job.result(LIMIT_S) == "saved"
    assert job.status() is JobStatus.SUCCEEDED


def test_a_running_job_that_raises_when_asked_is_stopped(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("listen", partial(listen_and_raise, tmp_path / "started")))
    wait_for(tmp_path / "started")
    job.terminate()
    assert job.wait(LIMIT_S) is JobStatus.STOPPED
    with pytest.raises(RuntimeError, match="stopped as asked"):
        job.result()
    assert well(client)


def test_a_job_can_ask_itself(client: Client) -> None:
    assert client.submit(JobRequest("stop", stop_by_itself)).result(LIMIT_S) == "stopped"


def test_a_job_that_has_ended_is_left_alone(client: Client) -> None:
    """A stop that comes late must not make a failure look like something that was wanted."""
    failed, done = client.submit(JobRequest("fail", partial(int, "x"))), client.submit(JobRequest("ok", int))
    for job in (failed, done):
        job.wait(LIMIT_S)
        job.terminate()
    assert (failed.status(), done.status()) == (JobStatus.FAILED, JobStatus.SUCCEEDED)
    assert well(client)


def test_whatever_is_stopped_when_all_jobs_end_and_others_are_well(client: Client) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    rng = random.Random(seed)
    jobs = [client.submit(JobRequest("brief", partial(brief, number))) for number in range(60)]
    stopped = rng.sample(range(60), 30)
    for number in stopped:
        jobs[number].terminate()
    statuses = wait_all(jobs, LIMIT_S)
    for number, (job, status) in enumerate(zip(jobs, statuses, strict=True)):
        if status is JobStatus.SUCCEEDED:
            assert job.result() == number
        else:
            assert status is JobStatus.STOPPED
            assert number in stopped
    assert well(client)


@elsewhere
def test_a_job_that_does_not_listen_is_interrupted_and_unwinds(client: Client, tmp_path: Path) -> None:
    started, unwound = tmp_path / "started", tmp_path / "unwound"
    job = client.submit(JobRequest("sleep", partial(sleep, started, unwound)))
    wait_for(started)
    job.terminate()
    assert job.wait(LIMIT_S) is JobStatus.STOPPED
    assert unwound.exists()
    for _ in range(2):
        with pytest.raises(CancelledError, match=f"job {job.job_id} was terminated"):
            job.result()
    assert well(client)


@elsewhere
def test_what_a_job_makes_of_the_interruption_is_the_cause(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("fall", partial(fall, tmp_path / "started")))
    wait_for(tmp_path / "started")
    job.terminate()
    with pytest.raises(CancelledError, match=f"job {job.job_id} was terminated") as caught:
        job.result(LIMIT_S)
    assert isinstance(caught.value.__cause__, ValueError)
    assert job.status() is JobStatus.STOPPED


def test_a_job_that_waits_for_one_that_is_stopped_is_stopped(open_client: Open, tmp_path: Path) -> None:
    client = open_client(1)
    parent = client.submit(JobRequest("parent", partial(wait_for_child, tmp_path)))
    wait_for(tmp_path / "child")
    parent.terminate()
    with pytest.raises(CancelledError, match=f"job {parent.job_id} was terminated"):
        parent.result(LIMIT_S)
    assert parent.status() is JobStatus.STOPPED


@elsewhere
def test_a_job_that_ignores_even_that_is_killed(client: Client, tmp_path: Path) -> None:
    job = client.submit(JobRequest("ignore", partial(ignore_all, tmp_path / "started"), losses=3))
    wait_for(tmp_path / "written")
    pid = int((tmp_path / "written").read_text())
    job.terminate()
    assert job.wait(LIMIT_S) is JobStatus.STOPPED, "and it is not tried again"
    with pytest.raises(CancelledError):
        job.result()
    wait_until(partial(gone, pid))
    assert well(client)
