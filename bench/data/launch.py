"""Start a contender, and find out what it cost: it and all processes that it left to anyone."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.data.contender import Contender
from bench.places import ROOT
from bench.processes import descendants, end_descendants, memory

_SET_SUBREAPER = 36  # of prctl: processes without a parent become ours, so that their time is counted
_POLL_S, _SAMPLE_S, _LINGER_S = 0.02, 0.25, 10.0


@dataclass(frozen=True)
class Cost:
    """Seconds from start to end, seconds of CPU of all processes, and the peak of the memory of all, in MB.

    The memory is sampled (proportional set size), and at least the peak of the largest process.
    """

    wall: float
    cpu: float
    peak: float


def measure(contender: Contender, documents: int, folder: Path, peers: Path, limit: float) -> Cost | str:
    """Run it to its end; a text says why it did not come to one."""
    ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    python = peers / "bin" / "python" if contender.is_peer else Path(sys.executable)
    if not python.exists():
        return f"no environment of peers at {peers}: python -m bench.dag.peers --install, or --peers PATH"
    words = [contender.case, contender.name, str(documents), str(folder)]
    with (folder / "said.txt").open("w") as said:
        child = subprocess.Popen(
            [python, "-m", "bench.data.child", *words],
            cwd=folder,
            env=_environment(contender, folder),
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        cost, child.returncode = _follow(child.pid, limit)
    except BaseException:
        end_descendants()
        raise
    if child.returncode == 0:
        return cost
    return f"exit code {child.returncode}: {_last_line(folder / 'said.txt')}"


def _environment(contender: Contender, folder: Path) -> dict[str, str]:
    if contender.is_peer:  # which may keep things in the user's folder
        return {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    own = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *([own] if own else [])])}


def _follow(child: int, limit: float) -> tuple[Cost, int]:
    """Wait until it and all its descendants have ended; those that linger are ended."""
    began = time.monotonic()
    until, sampled = began + limit, began
    code, wall, cpu, peak = 1, 0.0, 0.0, 0.0
    while True:
        try:
            process, status, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return Cost(wall, cpu, peak), code
        now = time.monotonic()
        if process:
            cpu += used.ru_utime + used.ru_stime
            peak = max(peak, used.ru_maxrss / 1e3)
        if process == child:
            code, wall, until = os.waitstatus_to_exitcode(status), now - began, now + _LINGER_S
        if now > until:
            end_descendants()
        if now > sampled + _SAMPLE_S:
            peak, sampled = max(peak, sum(map(memory, descendants()))), now
        if not process:
            time.sleep(_POLL_S)


def _last_line(file: Path) -> str:
    return next(reversed(file.read_text(errors="replace").strip().splitlines()), "it said nothing")
