"""Run a job in a process of its own, and see what it says and what it holds in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.engine.job import Job
from bench.engine.threads import THREADS
from bench.places import ROOT
from bench.processes import descendants, end_descendants, memory

_POLL_S, _SAMPLE_S = 0.1, 0.5
_KEPT_BY_COMPILERS = ("TREADLE_KERNEL_CACHE", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR")


@dataclass(frozen=True)
class Said:
    """What came of a job.

    Attributes:
        lines: that it printed.
        peak: MB of all its processes.
        others: cores that processes of others kept busy meanwhile, in the mean.
        problem: why it came to no good end, if so.
    """

    lines: list[dict[str, Any]]
    peak: float
    others: float
    problem: str | None


def launch(job: Job, peers: Path, limit: float, profile: Path | None = None) -> Said:
    """Run it to its end, for `limit` seconds at most; `profile` is a folder for what cProfile finds."""
    python = peers / "bin" / "python" if job.is_peer else Path(sys.executable)
    if not python.exists():
        return Said([], 0, 0, f"no environment of peers at {peers}: make bench-engine sets it up")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, _environment(job) as env:
        words = [str(python), *_profiled(job, profile), "-m", job.module, *job.words]
        began, strange = time.monotonic(), _strange()
        child = subprocess.Popen(words, cwd=ROOT, stdout=out, stderr=err, env=env)
        code, peak = _follow(child, limit)
        others = (_strange() - strange) / (time.monotonic() - began)
        problem = f"more than {limit:.0f} s" if code is None else f"exit code {code}: {_last_line(err)}"
        return Said(list(_lines(out)), peak, max(others, 0), problem if code != 0 else None)


def _profiled(job: Job, folder: Path | None) -> list[str]:
    return ["-m", "cProfile", "-o", str(folder / f"{job.name}.prof")] if folder else []


def _follow(child: subprocess.Popen[bytes], limit: float) -> tuple[int | None, float]:
    """Its exit code, None when it was ended, and the peak in MB."""
    until, sampled, shared, process, used = time.monotonic() + limit, 0.0, 0.0, 0, None
    try:
        while not process:
            # wait4, because it tells the peak of the process itself, which needs no samples.
            process, status, used = os.wait4(child.pid, os.WNOHANG)
            now = time.monotonic()
            if not process and now > until:
                end_descendants()
                child.wait()
                return None, shared
            if now > sampled + _SAMPLE_S:
                sampled, there = now, descendants()
                shared = max(shared, sum(map(memory, there))) if len(there) > 1 else shared
            if not process:
                time.sleep(_POLL_S)
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode, max(shared, used.ru_maxrss / 1e3 if used else 0)
    finally:
        end_descendants()


@contextmanager
def _environment(job: Job) -> Iterator[Mapping[str, str]]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), **job.environment}
    if job.is_peer:
        environment["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory(prefix="bench-engine-", ignore_cleanup_errors=True) as folder:
        if job.anew:
            environment |= {name: str(Path(folder) / name) for name in _KEPT_BY_COMPILERS}
        yield environment


def _strange() -> float:
    """Seconds that the cores were busy so far, without those of this process and its children that ended."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    # user, nice, system, then idle and waiting, then interrupts
    busy = (sum(ticks[:3]) + sum(ticks[5:7])) / os.sysconf("SC_CLK_TCK")
    return busy - sum(os.times()[:4])


def _lines(out: IO[str]) -> Iterator[dict[str, Any]]:
    out.seek(0)
    yield from (json.loads(line) for line in out if line.startswith('{"part"'))


def _last_line(err: IO[str]) -> str:
    err.seek(0)
    return next(reversed(err.read().strip().splitlines()), "it said nothing")
