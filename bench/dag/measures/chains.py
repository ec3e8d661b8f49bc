"""A chain of 10,000: depth is no limit, and costs nothing extra."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.dag.contenders import ours
from bench.dag.graphs import chain
from bench.dag.measures.measure import Measure, Row, micros, watch

STEPS = 10_000


def rows(folder: Path, full: bool) -> Iterator[Row]:  # noqa: ARG001
    """Cold, then warm."""
    for state in ("cold", "warm"):
        with watch() as took:
            ours.run_all(chain(STEPS), folder / "store")
        yield {
            "chain of 10,000": state,
            "s": round(took.seconds, 2),
            "µs a step": micros(took.seconds, STEPS),
        }


MEASURE = Measure("chain", "One step after the other, 10,000 of them.", rows)
