"""How the cost of a step grows with the graph: flat is linear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.dag.contenders import ours
from bench.dag.graphs import RAN, chain, layered
from bench.dag.measures.measure import Measure, Row, micros, watch

SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
COLD_TO = 20_000
FILL_SECONDS = 20.0


def rows(folder: Path, full: bool) -> Iterator[Row]:
    """One row a size. Above 20,000 a store is filled only when that is quick."""
    ours.run_all(chain(3), folder / "first")
    a_step = 0.0
    for steps in SIZES:
        needs, store = layered(steps), folder / str(steps)
        row: dict[str, str | int | float | None] = {"steps": steps, "cold": None, "warm": None}
        with watch() as planned:
            ours.plan(needs, folder / "empty")
        if full or steps <= COLD_TO or steps * a_step < FILL_SECONDS:
            with watch() as cold:
                ours.run_all(needs, store)
            a_step = cold.seconds / steps
            RAN.clear()
            with watch() as warm:
                ours.run_all(needs, store)
            if RAN:
                raise RuntimeError(f"warm, and {len(RAN)} steps ran")
            row.update(cold=micros(cold.seconds, steps), warm=micros(warm.seconds, steps))
        yield {**row, "plan, nothing done": micros(planned.seconds, steps)}


MEASURE = Measure(
    "growth",
    "Microseconds a step by the size of the graph (layered, 3 dependencies each): built and run, found to be "
    "done, and planned in an empty store. An empty cell: filling the store would have taken too long.",
    rows,
    150,
)
