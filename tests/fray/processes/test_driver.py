"""The process that submits: it ends, is killed, forks, gets Ctrl-C, and has no guard around its main part."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fray.processes.helpers import LIMIT_S, Driver, gone, wait_for, wait_until
from treadle.fray import ActorRequest, JobRequest
from treadle.fray.processes import ProcessClient


def test_a_script_needs_no_guard_and_runs_once(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        print("main part")
        class Odd(Exception): pass
        def fail(): raise Odd("as meant")
        with ProcessClient(2) as client:
            print(client.submit(JobRequest("six", lambda: 2 * 3)).result())
            try:
                client.submit(JobRequest("fail", fail)).result()
            except Odd as error:
                import traceback
                print(error, "driver.py" in traceback.format_exc() and "in fail" in traceback.format_exc())
        """,
    )
    assert driver.end() == (0, "main part\n6\nas meant True\n", "")


def test_workers_and_what_they_started_end_with_a_killed_driver(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        def hang(name):
            child = subprocess.Popen(["sleep", "600"])
            write(name, f"{os.getpid()} {child.pid}")
            try:
                time.sleep(600)
            finally:
                write(name + ".unwound", stop_requested())
        class Kept:
            def pid(self): return os.getpid()
        client = ProcessClient(3)
        for name in ("one", "two"):
            client.submit(JobRequest(name, lambda name=name: hang(name)))
        write("actor", client.create_actor(ActorRequest("kept", Kept)).pid())
        write("idle", client.submit(JobRequest("idle", os.getpid)).result())
        wait_for("one"), wait_for("two")
        write("ready", "")
        time.sleep(600)
        """,
    )
    wait_for(tmp_path / "ready")
    pids = [int(pid) for name in ("one", "two", "actor", "idle") for pid in wait_for(tmp_path / name).split()]
    assert not any(map(gone, pids))
    os.kill(driver.process.pid, signal.SIGKILL)
    wait_until(lambda: all(map(gone, pids)))
    assert [wait_for(tmp_path / f"{name}.unwound") for name in ("one", "two")] == ["True", "True"]
    driver.end()


@pytest.mark.parametrize("how", ["killed", "exits"])
def test_a_detached_job_goes_on_and_may_print(tmp_path: Path, how: str) -> None:
    driver = Driver(
        tmp_path,
        """
        def go_on():
            write("begun", os.getpid())
            wait_for("gate")
            for _ in range(3000):
                print("x" * 100)
                print("y" * 100, file=sys.stderr)
            try:
                current_client().submit(JobRequest("child", int))
            except ConnectionError as error:
                print(error)
            write("done", "well")
        client = ProcessClient(1)
        client.submit(JobRequest("go on", go_on, detached=True))
        wait_for("begun")
        if Path("exits").exists():
            sys.exit()
        write("ready", "")
        time.sleep(600)
        """,
    )
    if how == "exits":
        (tmp_path / "exits").touch()
    pid = int(wait_for(tmp_path / "begun"))
    if how == "killed":
        wait_for(tmp_path / "ready")
        driver.process.kill()
    driver.process.wait(LIMIT_S)
    assert not gone(pid)
    (tmp_path / "gate").touch()
    assert wait_for(tmp_path / "done") == "well"
    wait_until(lambda: gone(pid))
    driver.end()


def test_a_driver_that_just_ends_leaves_nothing(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        def hang(name):
            write(name, os.getpid())
            while True:
                try:
                    time.sleep(600)
                except KeyboardInterrupt:
                    pass
        client = ProcessClient(3, grace=0.2)
        client.submit(JobRequest("busy", lambda: hang("busy")))
        write("idle", client.submit(JobRequest("idle", os.getpid)).result())
        wait_for("busy")
        """,
    )
    assert driver.end() == (0, "", "")
    assert all(gone(int(wait_for(tmp_path / name))) for name in ("busy", "idle"))


def test_ctrl_c_ends_the_driver_and_its_jobs_unwind(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        def hang():
            write("begun", os.getpid())
            try:
                while not stop_requested():
                    time.sleep(0.005)
            finally:
                write("unwound", stop_requested())
        with ProcessClient(1) as client:
            job = client.submit(JobRequest("hang", hang))
            later = client.submit(JobRequest("later", hang))
            job.result()
        """,
    )
    pid = int(wait_for(tmp_path / "begun"))
    os.killpg(driver.process.pid, signal.SIGINT)
    code, _, err = driver.end()
    assert code == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert wait_for(tmp_path / "unwound") == "True", "it was asked, not hit by the signal"
    assert gone(pid)


def test_a_worker_leads_a_session_of_its_own(client: ProcessClient) -> None:
    assert client.submit(JobRequest("session", lambda: os.getsid(0) == os.getpid())).result(LIMIT_S)
    assert os.getsid(0) != client.submit(JobRequest("session", lambda: os.getsid(0))).result(LIMIT_S)


def test_the_child_of_a_fork_has_workers_of_its_own(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        class Kept:
            def pid(self): return os.getpid()
        client = ProcessClient(1)
        actor = client.create_actor(ActorRequest("kept", Kept))
        theirs = {actor.pid(), client.submit(JobRequest("pid", os.getpid)).result()}
        hanging = client.submit(JobRequest("hang", lambda: wait_for("gate")))
        child = os.fork()
        if not child:
            assert client.submit(JobRequest("pid", os.getpid)).result() not in theirs
            try:
                actor.pid()
            except ConnectionError as error:
                print(error, flush=True)
            client.shutdown()
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        write("gate", "")
        hanging.result()
        print(code, {actor.pid(), client.submit(JobRequest("pid", os.getpid)).result()} == theirs)
        client.shutdown()
        """,
    )
    code, out, err = driver.end()
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("actor kept#1 belongs to the process")
    assert out.splitlines()[1:] == ["0 True"]


def test_a_worker_does_not_outlive_a_driver_whose_child_does(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        client = ProcessClient(1)
        write("worker", client.submit(JobRequest("pid", os.getpid)).result())
        if not os.fork():
            write("child", os.getpid())
            os.close(1), os.close(2)
            time.sleep(600)
        wait_for("child")
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    driver.end()
    child = int(wait_for(tmp_path / "child"))
    wait_until(lambda: gone(int(wait_for(tmp_path / "worker"))))
    assert not gone(child)
    os.kill(child, signal.SIGKILL)


def test_shutdown_by_a_callback_does_not_hang(tmp_path: Path) -> None:
    client = ProcessClient(1)
    over = threading.Event()

    def shut_down(_: object) -> None:
        client.shutdown()
        over.set()

    client.submit(JobRequest("pid", os.getpid)).add_done_callback(shut_down)
    assert over.wait(LIMIT_S)


def test_handles_of_a_client_that_is_not_here(client: ProcessClient) -> None:
    assert client.submit(JobRequest("count", lambda: client.max_workers)).result(LIMIT_S) == 2
    actor = client.create_actor(ActorRequest("list", lambda: [1, 1]))
    assert client.submit(JobRequest("count", lambda: actor.count(1))).result(LIMIT_S) == 2
    assert client.submit(JobRequest("give", lambda: actor)).result(LIMIT_S) is actor
    with ProcessClient(1) as other, pytest.raises(ConnectionError, match="at home in another process"):
        other.submit(JobRequest("count", lambda: actor.count(1))).result(LIMIT_S)


def test_a_script_from_the_standard_input() -> None:
    script = """
from treadle.fray import JobRequest
from treadle.fray.processes import ProcessClient

def one():
    return 1

with ProcessClient(1) as first, ProcessClient(1) as second:
    jobs = [client.submit(JobRequest("one", one)) for client in (first, second, first, second)]
    print([job.result() for job in jobs])
"""
    ended = subprocess.run(
        [sys.executable, "-"], input=script, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "[1, 1, 1, 1]\n"), ended.stderr


def test_ctrl_c_in_the_block_of_a_client_by_name_ends_its_jobs(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        from treadle.fray import FrayClient

        def sleep():
            Path("started").write_text("yes\\n")
            time.sleep(600)

        with FrayClient("processes") as client:
            jobs = [client.submit(JobRequest("sleep", sleep)) for _ in range(200)]
            jobs[-1].result()
        """,
    )
    wait_for(tmp_path / "started")
    driver.process.send_signal(signal.SIGINT)
    code, _, err = driver.end()
    assert code == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
