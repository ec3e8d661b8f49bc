"""Workers that are killed, at any moment: it is seen, it is told, and nothing is left of them."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from pathlib import Path

import cloudpickle
import psutil
import pytest

from tests.fray.processes.helpers import LIMIT_S, children, gone, wait_for, wait_until, write
from treadle.errors import WorkerLostError
from treadle.fray import ActorRequest, JobRequest, JobStatus, current_client, stop_requested
from treadle.fray.processes import ProcessClient

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def hang(path: Path) -> None:
    print("about to hang")
    write(path, os.getpid())
    threading.Event().wait()


def hang_at_first(folder: Path) -> str:
    path = folder / str(os.getpid())
    if len(list(folder.iterdir())) < 2:
        hang(path)
    return "done"


def be_killed(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(600)


def count_down(milliseconds: float) -> str:
    time.sleep(milliseconds / 1000)
    return "done"


def parent(path: Path) -> None:
    current_client().submit(JobRequest("child", partial(listen, path / "child"))).add_done_callback(print)
    wait_for(path / "child")
    hang(path / "parent")


def listen(path: Path) -> None:
    write(path, os.getpid())
    wait_until(stop_requested)


def wait_for_child(folder: Path) -> None:
    child = current_client().submit(JobRequest("child", partial(hang, folder / "child")))
    write(folder / "parent", os.getpid())
    child.wait()


class Kept:
    def pid(self) -> int:
        return os.getpid()

    def die(self) -> None:
        os._exit(9)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_signal_is_named(client: ProcessClient, number: signal.Signals) -> None:
    with pytest.raises(WorkerLostError, match=rf"job killed#\d+: its worker \(process \d+\).*{number.name}"):
        client.submit(JobRequest("killed", partial(be_killed, number))).result(LIMIT_S)


def test_the_last_lines_are_told(client: ProcessClient, tmp_path: Path) -> None:
    job = client.submit(JobRequest("hang", partial(hang, tmp_path / "pid")))
    pid = int(wait_for(tmp_path / "pid"))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerLostError, match=f"process {pid}") as caught:
        job.result(LIMIT_S)
    assert "about to hang" in "\n".join(caught.value.__notes__)
    assert job.logs() == ["about to hang"]
    assert not psutil.pid_exists(pid), "it was reaped"


def test_it_is_tried_again(client: ProcessClient, tmp_path: Path) -> None:
    job = client.submit(JobRequest("again", partial(hang_at_first, tmp_path), losses=2))
    for count in (1, 2):
        wait_until(lambda count=count: len(list(tmp_path.glob("[0-9]*"))) == count)  # type: ignore[misc]
        newest = max(tmp_path.iterdir(), key=lambda each: each.stat().st_mtime_ns)
        os.kill(int(wait_for(newest)), signal.SIGKILL)
    assert job.result(LIMIT_S) == "done"
    assert job.status() is JobStatus.SUCCEEDED


def test_a_worker_that_is_killed_while_idle_does_no_job_any_harm(client: ProcessClient) -> None:
    for _ in range(20):
        pid = client.submit(JobRequest("pid", os.getpid)).result(LIMIT_S)
        os.kill(pid, signal.SIGKILL)
        assert client.submit(JobRequest("pid", os.getpid)).result(LIMIT_S) != pid


def test_children_of_a_lost_job_are_asked_to_stop(client: ProcessClient, tmp_path: Path) -> None:
    job = client.submit(JobRequest("parent", partial(parent, tmp_path)))
    os.kill(int(wait_for(tmp_path / "parent")), signal.SIGKILL)
    assert job.wait(LIMIT_S) is JobStatus.FAILED
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: gone(child))


def test_a_parked_job_that_is_killed_is_seen_at_once(tmp_path: Path) -> None:
    with ProcessClient(1, grace=0.2) as client:
        job = client.submit(JobRequest("parent", partial(wait_for_child, tmp_path)))
        wait_for(tmp_path / "child")  # it has the only place now, and keeps it
        os.kill(int(wait_for(tmp_path / "parent")), signal.SIGKILL)
        with pytest.raises(WorkerLostError):
            job.result(LIMIT_S)


def test_a_stopped_process_can_still_be_terminated(client: ProcessClient, tmp_path: Path) -> None:
    job = client.submit(JobRequest("hang", partial(hang, tmp_path / "pid")))
    pid = int(wait_for(tmp_path / "pid"))
    os.kill(pid, signal.SIGSTOP)
    job.terminate()
    assert job.wait(LIMIT_S) is JobStatus.STOPPED
    with pytest.raises(CancelledError):
        job.result()
    assert not psutil.pid_exists(pid)


def test_an_idle_actor_that_is_killed_is_made_anew(client: ProcessClient) -> None:
    actor = client.create_actor(ActorRequest("kept", Kept, losses=3))
    for restarts in range(1, 4):
        os.kill(pid := actor.pid(), signal.SIGKILL)
        assert actor.pid() != pid
        assert actor.restarts == restarts
    os.kill(actor.pid(), signal.SIGKILL)
    used_up = r"actor kept#\d+ was lost 4 times, and its losses=3 are used up: create another"
    for _ in range(2):
        with pytest.raises(WorkerLostError, match=used_up) as caught:
            actor.pid()
        assert "SIGKILL" in str(caught.value.__cause__)


def test_the_last_loss_of_an_actor_says_so(client: ProcessClient, tmp_path: Path) -> None:
    actor = client.create_actor(ActorRequest("kept", Kept, losses=1))
    with pytest.raises(WorkerLostError, match="the next call finds it made anew"):
        actor.die()
    with pytest.raises(WorkerLostError, match="its losses=1 are used up: create another"):
        actor.die()
    with pytest.raises(WorkerLostError, match=r"lost 2 times.*create another"):
        actor.pid()


def test_kills_at_any_moment(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw, draw_here = random.Random(seed), random.Random(seed + 1)
    done = threading.Event()

    def kill_now_and_then() -> None:
        while not done.wait(draw.uniform(0.01, 0.3)):
            with suppress(psutil.NoSuchProcess, IndexError):
                draw.choice(children()).kill()

    killer = threading.Thread(target=kill_now_and_then)
    with ProcessClient(3, grace=0.2) as client:
        killer.start()
        try:
            jobs = [
                client.submit(
                    JobRequest("count", partial(count_down, draw_here.uniform(0, 100)), losses=1000)
                )
                for _ in range(60)
            ]
            assert [job.result(LIMIT_S) for job in jobs] == ["done"] * 60
        finally:
            done.set()
            killer.join()
    assert not children()
