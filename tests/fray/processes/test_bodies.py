"""Bodies that do to their worker what should not be done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import pytest

from tests.fray.processes.helpers import LIMIT_S, gone, wait_for, wait_until, write
from treadle.errors import ClusterError, WorkerLostError
from treadle.fray import Client, JobHandle, JobRequest, JobStatus
from treadle.fray.processes import ProcessClient

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Odd(BaseException):
    pass


def fork_and_wait() -> int:
    pid = os.fork()
    if not pid:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork_and_return() -> int:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return pid  # in both processes


def fork_and_fail() -> int:
    pid = os.fork()
    if not pid:
        raise ValueError("in the child")
    os.waitpid(pid, 0)
    return pid


def spread(method: str) -> list[int]:
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map(abs, [-1, -2, -3])


def close_output() -> None:
    os.close(1)
    os.close(2)


def close_files() -> None:
    sys.stdout.close()
    sys.stderr.close()


def replace_output() -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
    os.dup2(sys.stdout.fileno(), 1)


def close_all() -> None:
    os.closerange(3, 100_000)  # numbers are as high as the driver's, which may have many open


def leave_folder(path: Path) -> None:
    path.mkdir()
    os.chdir(path)
    path.rmdir()


def raise_odd() -> NoReturn:
    raise Odd("base")


def say(text: str) -> str:
    print(text)
    return text


def shout(size: int) -> None:
    sys.stdout.write("x" * size)


def fork_and_hold(path: Path) -> None:
    if not os.fork():
        write(path, os.getpid())
        threading.Event().wait()
    wait_for(path)


def hold_and_die(path: Path) -> None:
    fork_and_hold(path)
    os._exit(3)


def run(client: Client, fn: Callable[[], Any], **options: Any) -> JobHandle[Any]:
    job = client.submit(JobRequest("body", fn, **options))
    job.wait(LIMIT_S)
    return job


def is_well(client: Client) -> bool:
    jobs = [client.submit(JobRequest("say", partial(say, f"hello {place}"))) for place in range(4)]
    return all(job.result(LIMIT_S) == job.logs()[0] for job in jobs)


def test_forks(client: ProcessClient) -> None:
    assert run(client, fork_and_wait).result() == 7
    assert run(client, fork_and_return).result() > 0
    assert run(client, fork_and_fail).result() > 0
    assert is_well(client)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(client: ProcessClient, method: str) -> None:
    assert run(client, partial(spread, method)).result() == [1, 2, 3]
    assert is_well(client)


@pytest.mark.parametrize("body", [close_output, close_files, replace_output])
def test_output_is_put_back(client: ProcessClient, body: Callable[[], None]) -> None:
    for _ in range(3):
        assert run(client, body).wait(raise_on_failure=True) is JobStatus.SUCCEEDED
        assert is_well(client)


def test_a_folder_that_is_gone_is_left(client: ProcessClient, tmp_path: Path) -> None:
    run(client, partial(leave_folder, tmp_path / "gone")).result()
    assert run(client, os.getcwd).result() == os.getcwd()  # noqa: PTH109


def test_closing_every_file_loses_the_worker(client: ProcessClient) -> None:
    with pytest.raises(WorkerLostError, match=r"body#\d+.*(closed its connection|exit code)"):
        run(client, close_all).result()
    assert is_well(client)


@pytest.mark.parametrize("code", [0, 3, "a reason"])
def test_exits_are_raised(client: ProcessClient, code: int | str) -> None:
    job = run(client, partial(sys.exit, code))
    assert job.status() is JobStatus.FAILED
    with pytest.raises(SystemExit) as caught:
        job.result()
    assert caught.value.code == code
    assert is_well(client)


def test_any_exception_is_raised_and_keeps_its_class(client: ProcessClient) -> None:
    with pytest.raises(Odd, match="base"):
        run(client, raise_odd).result()
    with pytest.raises(KeyboardInterrupt):
        run(client, partial(exec, "raise KeyboardInterrupt")).result()


def test_much_output_without_a_line_end(client: ProcessClient, capfd: pytest.CaptureFixture[str]) -> None:
    job = run(client, partial(shout, 10_000_000))
    assert job.status() is JobStatus.SUCCEEDED
    lines = job.logs()
    assert set("".join(lines)) == {"x"}
    assert sum(map(len, lines)) < 2 << 20
    assert len(capfd.readouterr().out) == 10_000_000


def test_a_module_that_kills_at_import_loses_the_worker(client: ProcessClient, tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(
        "import os\nif os.environ.get('DEADLY'): os._exit(5)\ndef f(): pass\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        import deadly  # type: ignore[import-not-found]

        with ProcessClient(1) as own:
            patch.setenv("DEADLY", "1")
            with pytest.raises(WorkerLostError, match="exit code 5"):
                run(own, deadly.f, losses=1).result()


def test_a_module_that_is_not_there_is_named(client: ProcessClient, tmp_path: Path) -> None:
    (tmp_path / "local_only.py").write_text("def f(): pass\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        import local_only  # type: ignore[import-not-found]

        (tmp_path / "local_only.py").unlink()
        job = run(client, local_only.f)
    with pytest.raises(ModuleNotFoundError, match="local_only") as caught:
        job.result()
    assert str(tmp_path) in "\n".join(caught.value.__notes__)


def test_a_worker_that_cannot_start_is_an_error_not_a_loop(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nsys.stderr.write('cannot go on')\nos._exit(9)\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with ProcessClient(1) as own:
            with pytest.raises(ClusterError, match=r"could not be started.*exit code 9") as caught:
                run(own, partial(say, "x"), losses=5).result()
            assert "cannot go on" in "\n".join(caught.value.__notes__)


def test_an_interpreter_that_is_not_there_fails_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with ProcessClient(1) as own:
        with pytest.raises(ClusterError, match="/no/such/python"):
            run(own, partial(say, "x"), losses=5).result()
        monkeypatch.undo()
        assert is_well(own)


def test_a_child_that_holds_all_open_does_not_hide_the_end(client: ProcessClient, tmp_path: Path) -> None:
    with pytest.raises(WorkerLostError, match="exit code 3"):
        run(client, partial(hold_and_die, tmp_path / "pid")).result()
    wait_until(lambda: gone(int((tmp_path / "pid").read_text())))


def test_what_a_job_has_started_goes_on_while_its_worker_does(client: ProcessClient, tmp_path: Path) -> None:
    run(client, partial(fork_and_hold, tmp_path / "pid")).result()
    pid = int(wait_for(tmp_path / "pid"))
    assert not gone(pid)
    assert is_well(client)
    subprocess.run(["kill", "-9", str(pid)], check=True)


def turn_deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    signal.alarm(600)


def hang(folder: Path) -> None:
    write(folder / "started", signal.getitimer(signal.ITIMER_REAL))
    try:
        threading.Event().wait()
    finally:
        write(folder / "unwound", "well")


def test_the_next_job_is_interrupted_whatever_this_one_did_to_signals(tmp_path: Path) -> None:
    with ProcessClient(1, grace=0.5) as own:
        run(own, turn_deaf).result(LIMIT_S)
        job = own.submit(JobRequest("hang", partial(hang, tmp_path)))
        assert wait_for(tmp_path / "started") == "(0.0, 0.0)"
        job.terminate()
        assert job.wait(LIMIT_S) is JobStatus.STOPPED
        assert wait_for(tmp_path / "unwound") == "well"


def test_a_result_that_cannot_be_opened_here_says_so(client: ProcessClient) -> None:
    class Closed:
        def __reduce__(self) -> tuple[Any, ...]:
            return int, ("no number",)

    job = run(client, Closed)
    with pytest.raises(ValueError, match="no number") as caught:
        job.result(LIMIT_S)
    assert caught.value.__notes__ == ["the job has returned, and its result cannot be unpickled here"]
