"""What it takes to know what has to run, for 100,000 steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.dag.contenders import ours
from bench.dag.graphs import chain, layered
from bench.dag.measures.measure import Measure, Row, micros, peak_mb, watch

STEPS = 100_000


def rows(folder: Path, full: bool) -> Iterator[Row]:  # noqa: ARG001
    """One row a part; the memory is the peak so far."""
    ours.plan(chain(3), folder / "first")
    needs, store = layered(STEPS), folder / "store"
    yield {
        "plan of 100,000 steps": "imports and the bare graph",
        "s": None,
        "µs a step": None,
        "peak MB": _peak(),
    }
    with watch() as took:
        made = ours.handles(needs)
    yield _row("handles", took.seconds)
    with watch() as took:
        specs = ours.lowered(made.values(), store)
    yield _row("lower: identities and places", took.seconds)
    with watch() as took:
        ours.plan_specs(specs)
    yield _row("plan: check, order, look at the store", took.seconds)


def _row(part: str, seconds: float) -> Row:
    return {
        "plan of 100,000 steps": part,
        "s": round(seconds, 2),
        "µs a step": micros(seconds, STEPS),
        "peak MB": _peak(),
    }


def _peak() -> float:
    return round(peak_mb())


MEASURE = Measure("plan", "A dry run in an empty store; 3 dependencies each.", rows, 180)
