"""Processes that are paused, and processes that are told to stop, in the middle of a body."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.execution import patient
from treadle.artifacts import open_store

pytestmark = pytest.mark.slow


class Processes:
    """Those that one test has started on one store."""

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "store")
        self.started: list[subprocess.Popen[str]] = []

    def start(self, mode: str, lease_seconds: float = 30) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, patient.__file__, self.store, mode],
            env={**os.environ, "TREADLE_LEASE_SECONDS": str(lease_seconds)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def mark(self, name: str) -> Path:
        return Path(f"{self.store}.{name}")

    def lines(self) -> int:
        return len(self.mark("ran").read_text().split()) if self.mark("ran").exists() else 0

    def wait_until(self, is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
        while not is_so():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Every output with its bytes and the time of its last change."""
        found = (each for each in Path(self.store).glob("one/**/*") if each.is_file())
        return {str(each): (each.read_bytes(), each.stat().st_mtime_ns) for each in found}


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


@pytest.mark.timeout(90)
@pytest.mark.parametrize("deaf", [False, True])
def test_a_paused_owner_that_wakes_up_changes_nothing_and_is_served(processes: Processes, deaf: bool) -> None:
    """A laptop that was closed must not overwrite what another runner has done meanwhile."""
    if deaf:
        processes.mark("deaf").touch()
    first = processes.start("long", lease_seconds=1)
    processes.wait_until(processes.mark("began").exists, first)
    first.send_signal(signal.SIGSTOP)
    second = processes.start("short", lease_seconds=1)
    out, err = second.communicate(timeout=60)
    assert (second.returncode, out) == (0, "Done short\n"), err
    before = processes.files()
    assert [content for content, _ in before.values()] == [b"short"]

    assert not processes.mark("asked").exists()
    first.send_signal(signal.SIGCONT)
    out, err = first.communicate(timeout=60)
    assert processes.mark("asked").exists(), "its body was asked to stop"
    assert (first.returncode, out) == (0, "Cached short\n"), err
    assert processes.files() == before
    store = open_store(processes.store)
    [place] = [each.place for each in store.ledger.places()]
    assert [each.number for each in store.records(place)] == [1]
    assert not store.ledger.owners([place])
    assert not list(Path(processes.store).glob(".treadle/work/*/*"))


@pytest.mark.timeout(90)
def test_a_living_owner_keeps_its_step_however_long_it_takes(processes: Processes) -> None:
    """A body that is longer than the lease is no reason to do the work twice."""
    first = processes.start("long", lease_seconds=1.5)
    processes.wait_until(processes.mark("began").exists, first)
    second = processes.start("short", lease_seconds=1.5)
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(5)
    first.kill()
    out, err = second.communicate(timeout=60)
    assert (second.returncode, out) == (0, "Done short\n"), err


def statuses(processes: Processes) -> dict[str, str]:
    store = open_store(processes.store)
    steps = patient.several(processes.store, "many")
    notes = store.ledger.last_attempts(store.place(each.output_path) for each in steps)
    assert not store.ledger.owners(store.place(each.output_path) for each in steps), "leases were given back"
    return {note.name: note.outcome for note in notes.values()}


@pytest.mark.timeout(60)
def test_one_ctrl_c_starts_nothing_new_and_leaves_a_status_of_each_step(processes: Processes) -> None:
    """Runners that first work off their queue cannot be stopped; others leave steps running for ever."""
    process = processes.start("many")
    processes.wait_until(lambda: processes.lines() == 4, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT, "which a shell shows as 130"
    assert "KeyboardInterrupt" in err
    assert processes.lines() == 4
    found = statuses(processes)
    assert found.pop("first") == "done"
    assert set(found.values()) == {"cancelled"}
    assert len(found) == 12
    assert not list(Path(processes.store).glob("s*/*"))


@pytest.mark.timeout(60)
def test_a_second_ctrl_c_leaves_at_once_and_the_next_run_needs_no_help(processes: Processes) -> None:
    process = processes.start("stubborn")
    processes.wait_until(lambda: processes.lines() == 4, process)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT, err
    assert processes.lines() == 4
    again = processes.start("many")
    processes.wait_until(lambda: processes.lines() == 8, again)
