"""A measure: a named function that gives rows, run in a process of its own."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Row: TypeAlias = Mapping[str, str | int | float | None]


@dataclass(frozen=True)
class Measure:
    """`rows(folder, full)` gives its rows as they come, so that a time limit loses the later ones only.

    `about` says how to read the table; `seconds` is the time limit of the process.
    """

    name: str
    about: str
    rows: Callable[[Path, bool], Iterator[Row]]
    seconds: float = 120


class Watch:
    """`seconds` of wall time and `cpu` seconds of all threads."""

    seconds = 0.0
    cpu = 0.0


@contextmanager
def watch() -> Iterator[Watch]:
    """Measure the block."""
    found, wall, cpu = Watch(), time.perf_counter(), time.process_time()
    yield found
    found.seconds, found.cpu = time.perf_counter() - wall, time.process_time() - cpu


def peak_mb() -> float:
    """The most memory that this process has held, in MB."""
    scale = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6


def present_mb() -> float:
    """The memory that this process holds now, in MB."""
    import psutil

    return float(psutil.Process().memory_info().rss) / 1e6


def micros(seconds: float, steps: int) -> float:
    """Microseconds a step."""
    return round(seconds / steps * 1e6, 1)
