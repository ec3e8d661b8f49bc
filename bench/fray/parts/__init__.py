"""The parts of the benchmark, each run in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.fray.parts import losses, processes, ray, stream, threads
from bench.fray.side_by_side import Row


@dataclass(frozen=True)
class Part:
    """`rows()` gives what was found; `about` says how to read it."""

    about: str
    rows: Callable[[], Iterable[Row]]


PARTS = {
    "jobs on threads": Part(threads.ABOUT, threads.rows),
    "processes": Part(processes.ABOUT, processes.rows),
    "Ray": Part(ray.ABOUT, ray.rows),
    "a stream": Part(stream.ABOUT, stream.rows),
    "killed workers": Part(losses.ABOUT, losses.rows),
}
