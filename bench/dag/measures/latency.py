"""From the end of a step's body to the start of its dependent's: what lies between two steps of a chain."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from bench.dag import graphs
from bench.dag.contenders import floor, ours
from bench.dag.graphs import Needs, chain
from bench.dag.measures.measure import Measure, Row

STEPS = 2_000
_TIMES: list[tuple[float, float]] = []


def rows(folder: Path, full: bool) -> Iterator[Row]:  # noqa: ARG001
    """The floors, then treadle."""
    floor.work = _clocked  # type: ignore[attr-defined]
    ours.work = _clocked  # type: ignore[attr-defined]
    for contender in (floor.BARE, floor.KEPT, ours.KEPT, ours.MEMORY):
        try:
            yield {
                "end to start": contender.name,
                **_latency(contender.run, folder / str(len(contender.name))),
            }
        except Exception as error:  # noqa: BLE001 - told in its row
            yield {"end to start": contender.name, "median µs": None, "p99 µs": None, "note": str(error)[:80]}


def _clocked(key: int, *values: int) -> int:
    began = time.perf_counter()
    value = graphs.work(key, *values)
    _TIMES.append((began, time.perf_counter()))
    return value


def _latency(run: Callable[[Needs, Path], object], store: Path) -> Row:
    run(chain(3), store / "first")
    _TIMES.clear()
    run(chain(STEPS), store / "chain")
    if len(_TIMES) != STEPS:
        raise RuntimeError(f"{len(_TIMES)} of {STEPS} steps ran")
    gaps = [(after[0] - before[1]) * 1e6 for before, after in pairwise(_TIMES)]
    return {
        "median µs": round(statistics.median(gaps), 1),
        "p99 µs": round(statistics.quantiles(gaps, n=100)[98], 1),
    }


MEASURE = Measure(
    "latency", "Between the bodies of two steps of a chain of 2,000, measured inside the steps.", rows
)
