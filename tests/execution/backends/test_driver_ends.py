"""The process that drives a run is interrupted, or killed, while its steps run in other processes."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from treadle.artifacts import open_store
from treadle.storage.ledger.process import is_gone

pytestmark = pytest.mark.timeout(180)
ROOT = Path(__file__).parents[3]


class Project:
    """A store, and a folder in which drivers and tests tell each other things."""

    def __init__(self, root: Path, steps: int) -> None:
        self.store, self.folder = root / "store", root / "folder"
        (self.folder / "begun").mkdir(parents=True)
        (self.folder / "steps").write_text(str(steps))
        self.steps = steps
        self.started: list[subprocess.Popen[str]] = []

    def start(self, backend: str = "processes", *options: str) -> subprocess.Popen[str]:
        arguments = [str(self.store), str(self.folder), backend, *options]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.execution.backends.driver", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def begun(self) -> dict[str, int]:
        found = (self.folder / "begun").iterdir()
        return {each.name: len(each.read_text().split()) for each in found}

    def pids(self) -> set[int]:
        found = (self.folder / "begun").iterdir()
        return {int(pid) for each in found for pid in each.read_text().split()}

    def attempts(self) -> list[tuple[str, str]]:
        notes = open_store(str(self.store)).ledger.attempts()
        return [(note.outcome, note.reason) for note in notes]

    def owners(self) -> int:
        owners = dict(open_store(str(self.store)).ledger.leases()).values()
        return sum(not is_gone(owner) for owner in owners)

    def done(self) -> int:
        return sum(1 for _ in open_store(str(self.store)).ledger.places())

    def expected(self) -> str:
        values: list[int] = []
        for n in range(self.steps):
            values.append(n + sum(values[-7:-4]))
        return f"sum {sum(values)}"


def until(condition: Callable[[], bool], what: str, patience: float = 60.0) -> None:
    late = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < late, what
        time.sleep(0.01)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path, 4)
    yield made
    for each in made.started:
        if each.poll() is None:
            each.kill()
        each.communicate()


def are_gone(pids: set[int]) -> bool:
    alive = [pid for pid in pids if psutil.pid_exists(pid)]
    return all(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE for pid in alive)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_steps_leases_and_processes(project: Project, how: signal.Signals) -> None:
    (project.folder / "wait").touch()
    process = project.start()
    until(lambda: len(project.begun()) == 4, "four bodies")
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (128 + how, -how), (out, err)
    assert [outcome for outcome, _ in project.attempts()] == ["cancelled"] * 4
    assert not [reason for _, reason in project.attempts() if "before it began" in reason]
    assert project.owners() == 0
    until(lambda: are_gone(project.pids()), "no process is left")
    (project.folder / "wait").unlink()
    again = project.start()
    out, err = again.communicate(timeout=60)
    assert project.expected() in out, err
    assert set(project.begun().values()) == {2}


def test_who_leaves_at_once_leaves_no_body_behind(project: Project) -> None:
    """A second Ctrl-C does not wait for bodies that do not stop, and they have been asked to."""
    (project.folder / "wait").touch()
    (project.folder / "deaf").touch()
    process = project.start()
    until(lambda: len(project.begun()) == 4, "four bodies")
    process.send_signal(signal.SIGINT)
    until(lambda: (project.folder / "asked").exists(), "a body that sees it")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (128 + signal.SIGINT, -signal.SIGINT)
    until(lambda: are_gone(project.pids()), "no process is left")
    assert project.owners() == 0
    assert project.done() == 0


def test_what_had_begun_goes_on_when_the_driver_is_killed_and_is_not_done_again(project: Project) -> None:
    (project.folder / "wait").touch()
    process = project.start()
    until(lambda: len(project.begun()) == 4, "four bodies")
    process.kill()
    process.wait()
    assert project.owners() == 4, "they are at work"
    again = project.start()
    until(lambda: (project.folder / "ready").exists(), "the second driver")
    (project.folder / "go").touch()
    out, err = again.communicate(timeout=90)
    assert again.returncode == 0, err
    assert project.expected() in out
    assert set(project.begun().values()) == {1}, "each body ran once"
    assert project.done() == 4
    until(lambda: are_gone(project.pids()), "no process is left")


def test_they_are_done_even_if_nobody_comes_back(project: Project) -> None:
    (project.folder / "wait").touch()
    process = project.start()
    until(lambda: len(project.begun()) == 4, "four bodies")
    process.kill()
    process.wait()
    (project.folder / "go").touch()
    until(lambda: project.done() == 4, "all are done")
    until(lambda: are_gone(project.pids()), "no process is left")
    assert project.owners() == 0


def test_the_sum_is_the_same_on_threads(project: Project) -> None:
    out, err = project.start("threads").communicate(timeout=60)
    assert project.expected() in out, err
