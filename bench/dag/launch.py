"""Start a worker, and take its answers until it ends or its time is over."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.places import PEERS, ROOT


@dataclass(frozen=True)
class Answers:
    """The lines of a worker; `seconds` is the time of the whole process, `problem` why it ended early."""

    lines: list[dict[str, Any]]
    seconds: float
    problem: str | None


def python_of(is_peer: bool) -> Path:
    """The interpreter: the peers have one of their own, so that they cannot disturb treadle's."""
    return PEERS / "bin" / "python" if is_peer else Path(sys.executable)


def ask(words: Sequence[str], folder: Path, limit: float, *, is_peer: bool) -> Answers:
    """Run the worker with `words` in `folder`, at most `limit` seconds."""
    with (folder / "stderr.txt").open("a") as errors:
        worker = subprocess.Popen(
            [python_of(is_peer), "-m", "bench.dag.worker", *words],
            cwd=folder,
            env=_environment(is_peer, folder),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    began, late = time.monotonic(), threading.Event()

    def stop() -> None:
        late.set()
        _end(worker.pid)

    timer = threading.Timer(limit, stop)
    timer.start()
    try:
        lines = [json.loads(line) for line in worker.stdout or ()]
        os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    finally:
        timer.cancel()
        _end(worker.pid)  # with what it left behind, and before its number can be another's
    code = worker.wait()
    problem = f"more than {limit:.0f} s" if late.is_set() else f"exit code {code}" if code else None
    return Answers(lines, time.monotonic() - began, problem)


def _environment(is_peer: bool, folder: Path) -> dict[str, str]:
    if is_peer:  # which may keep things in the user's folder, or be told things there
        return {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    own = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *([own] if own else [])])}


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
