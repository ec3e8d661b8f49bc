"""Drivers that find themselves, or put themselves, where few are."""

from __future__ import annotations

import os
import resource
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.fray.processes.helpers import LIMIT_S, Driver, gone, wait_for, wait_until
from treadle.errors import ClusterError
from treadle.fray import ActorHandle, ActorRequest, JobRequest, current_client
from treadle.fray.processes import ProcessClient, pool


def test_a_child_that_holds_the_channel_open_keeps_no_worker(tmp_path: Path) -> None:
    """One that was forked while a worker was started, or by no Python, has the driver's files."""
    driver = Driver(
        tmp_path,
        """
        import ctypes
        def wait(name):
            write(name, os.getpid())
            current_client().submit(JobRequest("sleep", lambda: time.sleep(600))).result()
        client = ProcessClient(1)
        write("idle", client.submit(JobRequest("pid", os.getpid)).result())
        with ProcessClient(1) as other:
            other.submit(JobRequest("wait", lambda: wait("waits"), detached=True))
            wait_for("waits")
            if not ctypes.PyDLL(None).fork():
                write("child", os.getpid())
                os.close(1), os.close(2)
                time.sleep(600)
            wait_for("child")
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    driver.end()
    child = int(wait_for(tmp_path / "child"))
    for name in ("idle", "waits"):
        wait_until(partial(gone, int(wait_for(tmp_path / name))))
    assert not gone(child)
    os.kill(child, signal.SIGKILL)


def test_a_driver_without_input_and_output(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        for fd in (0, 1, 2):
            os.close(fd)
        client = ProcessClient(1)
        job = client.submit(JobRequest("speak", lambda: print("well") or sys.stderr.write("done")))
        write("said", f"{job.result()} {job.logs()}")
        """,
    )
    driver.end()
    assert wait_for(tmp_path / "said") == "4 ['well', 'done']"


def test_a_folder_that_is_gone_and_a_search_path_of_anything(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        sys.path += [3, None, "", "no/such/folder"]
        client = ProcessClient(1)
        print(client.submit(JobRequest("int", int)).result())
        os.mkdir("here"), os.chdir("here"), os.rmdir("../here")
        try:
            client.submit(JobRequest("int", int))
        except ConnectionError as error:
            print(error)
        os.chdir("/")
        print(client.submit(JobRequest("int", int)).result())
        """,
    )
    code, out, err = driver.end()
    assert (code, err) == (0, "")
    assert out.splitlines()[::2] == ["0", "0"]
    assert "was deleted" in out


def test_a_driver_that_wants_to_know_of_no_child(tmp_path: Path) -> None:
    driver = Driver(
        tmp_path,
        """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        client = ProcessClient(1)
        try:
            client.submit(JobRequest("die", lambda: os.kill(os.getpid(), signal.SIGKILL))).result()
        except Exception as error:
            print(error)
        """,
    )
    _, out, err = driver.end()
    assert "ended (nobody knows how: this process ignores SIGCHLD" in out
    assert not err


def nest(depth: int) -> int:
    if not depth:
        return 0
    return 1 + int(current_client().submit(JobRequest("below", partial(nest, depth - 1))).result())


def test_jobs_that_wait_may_not_take_the_whole_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SPARE", 4)
    with ProcessClient(1) as client:
        assert client.submit(JobRequest("nest", partial(nest, 4))).result(LIMIT_S) == 4
        job = client.submit(JobRequest("nest", partial(nest, 5)))
        with pytest.raises(
            ClusterError, match="expected at most 5, which are there, held by actors and by jobs"
        ):
            job.result(LIMIT_S)
        actors: list[ActorHandle[list[int]]] = [
            client.create_actor(ActorRequest("list", list)) for _ in range(6)
        ]
        ends = [each.submit("copy").wait(LIMIT_S).value for each in actors]
        assert ends == ["succeeded"] * 5 + ["failed"]
        for each in actors:
            each.terminate()
        assert client.submit(JobRequest("int", int)).result(LIMIT_S) == 0


def test_too_many_open_files_fail_the_job_and_say_so() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ProcessClient(1) as client:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (os.open(os.devnull, os.O_RDONLY) + 8, before[1]))
            job = client.submit(JobRequest("nest", partial(nest, 4)))
            with pytest.raises(ClusterError, match=r"Too many open files.*ulimit -n"):
                job.result(LIMIT_S)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert client.submit(JobRequest("int", int)).result(LIMIT_S) == 0
