"""Whether the work for a finished step depends on how many wait: a narrow fan and a wide one."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.dag.contenders import ours
from bench.dag.graphs import chain, fan
from bench.dag.measures.measure import Measure, Row, micros, watch

WIDTHS = {1_000: 5, 20_000: 1}


def rows(folder: Path, full: bool) -> Iterator[Row]:  # noqa: ARG001
    """CPU time of all threads of the process, the median of a few runs of the narrow one."""
    ours.run_all(chain(3), folder / "first")
    narrow = 0.0
    for width, times in WIDTHS.items():
        cpu = statistics.median(_cpu(width, folder / f"{width}-{at}") for at in range(times))
        narrow = narrow or cpu
        yield {"fan": f"1-{width}-1", "CPU µs a step": cpu, "ratio": round(cpu / narrow, 2)}


def _cpu(width: int, store: Path) -> float:
    with watch() as took:
        ours.run_all(fan(width), store)
    return micros(took.cpu, width + 2)


MEASURE = Measure("cpu", "CPU time a step, cold: flat when the work does not depend on what waits.", rows)
