"""What the tests of processes share. Bodies of jobs go by value; processes meet by files."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import cloudpickle
import psutil

cloudpickle.register_pickle_by_value(sys.modules[__name__])

LIMIT_S = 60.0
"""After this a test is said to hang, in seconds."""


def wait_until(condition: Callable[[], bool]) -> None:
    """Block until it holds; there is no event that all processes could wait at."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for has not come")
        time.sleep(0.005)


def wait_for(path: Path) -> str:
    """Block until the file has a whole line; gives it."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().strip()


def write(path: Path, text: object) -> None:
    """Make a file of one line; see `wait_for`."""
    path.write_text(f"{text}\n")


def gone(pid: int) -> bool:
    """Whether there is no such process, or one that has ended and is not reaped."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def children() -> list[psutil.Process]:
    """The workers of this process and what is below them, with those that have ended and were not reaped.

    A Ray cluster that other tests of the session share is not ours.
    """
    ours = [each for each in psutil.Process().children() if not _is_of_ray(each)]
    return [each for child in ours for each in (child, *_below(child))]


def _is_of_ray(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("ray") or "/ray/" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def open_files() -> int:
    """How many file descriptors this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def treadle_threads() -> list[str]:
    """The names of the threads of clients of this kind."""
    return [each.name for each in threading.enumerate() if each.name in ("treadle-job", "treadle-workers")]


class Driver:
    """A script of its own, in a process group of its own, that uses a client."""

    def __init__(self, folder: Path, source: str) -> None:
        script = folder / "driver.py"
        script.write_text(_PROLOGUE + textwrap.dedent(source))
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self) -> tuple[int, str, str]:
        """Wait for it; its exit code and what it printed."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


_PROLOGUE = """
import os, signal, subprocess, sys, time
from pathlib import Path
from treadle.fray import ActorRequest, JobRequest, current_client, stop_requested
from treadle.fray.processes import ProcessClient

def write(path, text):
    Path(path + ".tmp").write_text(f"{text}\\n")
    Path(path + ".tmp").rename(path)

def wait_for(path):
    while not Path(path).exists():
        time.sleep(0.005)

"""
