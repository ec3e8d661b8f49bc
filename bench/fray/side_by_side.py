"""Contenders that take turns, so that noise hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Row: TypeAlias = Mapping[str, str | int | float | None]


@dataclass(frozen=True)
class Cost:
    """Medians, in microseconds for one of `count`; CPU is that of this process alone."""

    wall: float
    best: float
    cpu: float


def side_by_side(contenders: Mapping[str, Callable[[], object]], count: int, runs: int) -> dict[str, Cost]:
    """Run each once for practice, then all of them in turn, `runs` times."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for number in range(runs + 1):
        for name, work in contenders.items():
            began = time.perf_counter(), time.process_time()
            work()
            if number:
                found[name].append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return {name: _cost(times, count) for name, times in found.items()}


def _cost(times: list[tuple[float, float]], count: int) -> Cost:
    walls = [wall / count * 1e6 for wall, _ in times]
    return Cost(
        round(statistics.median(walls), 2),
        round(min(walls), 2),
        round(statistics.median(cpu for _, cpu in times) / count * 1e6, 2),
    )


def rows_of(work: str, costs: Mapping[str, Cost], ours: str) -> list[Row]:
    """A row for each contender; the ratio is that of ours to it."""
    return [
        {
            "work": work,
            "": name,
            "wall, µs": cost.wall,
            "best, µs": cost.best,
            "CPU of the driver, µs": cost.cpu,
            "treadle ÷ this": None if name == ours else float(f"{costs[ours].wall / cost.wall:.2g}"),
        }
        for name, cost in costs.items()
    ]
