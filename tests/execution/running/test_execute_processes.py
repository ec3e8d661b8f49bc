"""One step, one owner, all or nothing, when processes race or die."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import os, sys, time
from pathlib import Path
from treadle import StepRunner, StepSpec

store, log, mode = sys.argv[1:]

def body(name):
    def fn(path):
        assert os.listdir(path) == [], os.listdir(path)
        assert not list(Path(store).glob(name + "/*"))
        with open(log, "a") as file:
            file.write(f"{name}\\n")
        Path(path, "half.txt").write_text("half")
        if name == "b" and mode == "exit":
            os._exit(9)
        if name == "b" and mode == "hang":
            Path(store, "hanging").touch()
            time.sleep(60)
        time.sleep(0.02)
        Path(path, "whole.txt").write_text("whole")
        return name
    return fn

def spec(name, *deps):
    return StepSpec(name, body(name), deps, output_path_prefix=store)

a = spec("a")
b = spec("b", a)
c, d = spec("c", a), spec("d", b)
fan = [spec(f"f{n}", b, c) for n in range(6)]
StepRunner(4).run([d, c, *fan])
"""
NAMES = sorted(["a", "b", "c", "d", *(f"f{n}" for n in range(6))])


class Project:
    def __init__(self, folder: Path) -> None:
        self.script, self.store, self.log = folder / "script.py", folder / "store", folder / "log.txt"
        self.script.write_text(SCRIPT)
        self.store.mkdir()

    def start(self, mode: str = "") -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, self.script, self.store, self.log, mode])

    def ran(self) -> list[str]:
        return sorted(self.log.read_text().split())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_body_that_kills_its_process_is_done_again_in_a_clean_folder(project: Project) -> None:
    """A half-written folder looks like a done one to whoever only asks whether it exists."""
    assert project.start("exit").wait() == 9
    assert list(project.store.glob(".treadle/work/*/half.txt")), "it was in the middle"
    assert not list(project.store.glob("b/*")), "and nobody sees that"
    assert project.start().wait() == 0
    assert project.ran().count("b") == 2
    assert project.ran().count("a") == 1
    assert project.start("exit").wait() == 0, "all is done, so nothing runs"


def test_kill_9_leaves_no_lock_and_no_record(project: Project) -> None:
    process = project.start("hang")
    while not (project.store / "hanging").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert project.start().wait(30) == 0
    assert project.ran().count("b") == 2


def test_two_processes_on_one_store_compute_each_step_once(project: Project) -> None:
    both = [project.start(), project.start()]
    assert [process.wait() for process in both] == [0, 0]
    assert project.ran() == NAMES
