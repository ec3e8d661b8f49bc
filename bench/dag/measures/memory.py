"""The most memory that a run of 2,000 steps holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.dag.contenders import ours
from bench.dag.graphs import chain, layered
from bench.dag.measures.measure import Measure, Row, peak_mb

STEPS = 2_000


def rows(folder: Path, full: bool) -> Iterator[Row]:  # noqa: ARG001
    """Before, and after; what is imported by the first small run is not the graph's."""
    ours.run_all(chain(3), folder / "first")
    before = peak_mb()
    yield {"peak memory": "imports and three steps", "MB": round(before, 1), "KB a step": None}
    ours.run_all(layered(STEPS), folder / "store")
    peak = peak_mb()
    yield {
        "peak memory": "2,000 steps, cold",
        "MB": round(peak, 1),
        "KB a step": round((peak - before) * 1e3 / STEPS, 2),
    }


MEASURE = Measure("memory", "The peak of the whole process.", rows)
