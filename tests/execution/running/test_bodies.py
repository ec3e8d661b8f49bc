"""Bodies that fork, that read while others build, and that run steps of their own."""

import os
import sys
import time
from pathlib import Path
from threading import Event

import pytest

from treadle import Retry, StepContext, run, step
from treadle.artifacts import open_store
from treadle.errors import StepsFailedError
from treadle.execution import Step, StepRunner, StepSpec
from treadle.execution.running import drive, execute
from treadle.fray import JobRequest, current_client, stop_requested
from treadle.kernel import Cached


@step
def forks(ctx: StepContext) -> str:
    Path(ctx.output_path, "before").write_text("1")
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    Path(ctx.output_path, "after").write_text("2")
    return "parent"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_that_leaves_takes_nothing_along(tmp_path: Path) -> None:
    """`if os.fork() == 0: ...; sys.exit()` is how children end. The exit passes through the runner's
    frames in the child, which must not clear the parent's working folder, nor give back its claim or
    commit for it.
    """
    handle = forks()
    assert run(handle, prefix=tmp_path)[handle.id] == "parent"


@step(version="dev")
def parts(ctx: StepContext) -> Path:
    stamp = str(time.monotonic_ns())
    Path(ctx.output_path, "a").write_text(stamp)
    Path(ctx.output_path, "b").write_text(stamp)
    return Path(ctx.output_path)


@step
def joined(folder: Path, prefix: str, times: int) -> list[str]:
    first = (folder / "a").read_text()
    _READ.append(first)
    if len(_READ) <= times:
        run(parts(), prefix=prefix)  # as another process may at any moment
    return [first, (folder / "b").read_text()]


_READ: list[str] = []


def test_what_was_read_from_two_builds_is_read_again(tmp_path: Path) -> None:
    """A dependency that is built anew while a body reads it leaves half of each build in the value. The
    record would say that it was made from a build which it was not made from.
    """
    _READ.clear()
    handle = joined(parts(), str(tmp_path), 1).with_options(retry=Retry(attempts=1, delay=0))
    results = run(handle, prefix=tmp_path)
    first, second = results[handle.id]
    assert first == second == _READ[1] != _READ[0]
    assert results.outcomes[handle.id].attempts == 1, "it was no fault of the step"
    store = open_store(str(tmp_path))
    notes = store.ledger.attempts(store.place(results.outcomes[handle.id].output_path))
    assert [note.outcome for note in notes] == ["done", "lost"]


def test_what_is_built_anew_each_time_it_is_read_is_an_error(tmp_path: Path) -> None:
    _READ.clear()
    handle = joined(parts(), str(tmp_path), 9).with_options(retry=Retry(attempts=1, delay=0, losses=1))
    with pytest.raises(StepsFailedError, match=r"parts@dev was built anew, or forgotten, while it was read"):
        run(handle, prefix=tmp_path)
    assert len(_READ) == 2


def test_a_long_step_sees_the_rebuild_of_any_dependency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only of one whose version says that every run builds it anew."""
    monkeypatch.setattr(execute, "_SHORT", 0.0)
    tries: list[int] = []

    def body(path: str) -> None:
        tries.append(1)
        if len(tries) == 1:
            StepRunner().run([dep], force=["dep"])

    dep = StepSpec("dep", lambda path: None, output_path_prefix=str(tmp_path))
    retry = Retry(attempts=1, delay=0)
    spec = StepSpec("reads", body, [dep], output_path_prefix=str(tmp_path), retry=retry)
    StepRunner().run([spec])
    assert len(tries) == 2
    assert StepRunner().run([spec]).counts == {Cached: 2}


@step
def left(prefix: str) -> int:
    _LEFT.set()
    _RIGHT.wait()
    other = right(prefix)
    return int(run(other, prefix=prefix)[other.id])


@step
def right(prefix: str) -> int:
    _RIGHT.set()
    _LEFT.wait()
    other = left(prefix)
    return int(run(other, prefix=prefix)[other.id])


_LEFT, _RIGHT = Event(), Event()


@pytest.mark.timeout(60)
def test_two_steps_that_run_each_other_are_told_so(tmp_path: Path) -> None:
    """Each would wait for the lease of the other for ever, and Ctrl-C would wait for both."""
    with pytest.raises(StepsFailedError, match="wait for the other for ever"):
        run(left(str(tmp_path)), right(str(tmp_path)), prefix=tmp_path)


@step
def number(n: int) -> int:
    return n


@step
def slow(folder: str) -> int:
    while not stop_requested():
        time.sleep(0.001)
    Path(folder, "ended").touch()
    return 1


@step(timeout=0.05)
def deaf() -> int:
    time.sleep(0.2)
    return 1


@step(timeout=0.05)
def looks_below() -> int:
    """What a job sees that it has submitted is the affair of that job."""
    return 1 + current_client().submit(JobRequest("look", late_look)).result()


def late_look() -> bool:
    time.sleep(0.2)
    return stop_requested()


@pytest.mark.parametrize("body", [deaf, looks_below], ids=lambda each: each.name)
def test_a_late_body_that_never_looked_is_done(tmp_path: Path, body: Step[int]) -> None:
    """It has not stopped half way: it is whole."""
    handle = body()
    assert run(handle, prefix=tmp_path)[handle.id] > 0


def test_no_body_runs_on_when_the_loop_itself_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks in the loop, the bodies are asked to stop and waited for, as for a broken reporter: a
    caller that goes on, and removes the store, does not expect a thread of ours in it."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(drive.Drive, "_finish", broken)
    with pytest.raises(ZeroDivisionError):
        run(slow(str(tmp_path)), number(2), prefix=tmp_path / "store")
    assert (tmp_path / "ended").exists()
