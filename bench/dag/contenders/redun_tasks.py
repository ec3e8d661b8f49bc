"""redun: one call a step, its scheduler on an SQLite database."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, sinks, work


def run(needs: Needs, store: Path) -> object:
    """One expression a step."""
    from redun import Scheduler
    from redun.config import Config

    logging.getLogger("redun").setLevel(logging.ERROR)
    store.mkdir(parents=True, exist_ok=True)
    sections = {
        "backend": {"db_uri": f"sqlite:///{store}/redun.db"},
        "executors.default": {"type": "local", "max_workers": str(THREADS)},
    }
    scheduler = Scheduler(config=Config(sections))
    scheduler.load()
    task, made = _task(), dict[int, Any]()
    for key, some in needs.items():
        made[key] = task(key, [made[each] for each in some])
    return scheduler.run([made[key] for key in sinks(needs)])


@cache
def _task() -> Any:
    from redun import task

    @task(name="step", namespace="treadle_bench", version="1")
    def step(key: int, values: list[int]) -> int:
        return work(key, *values)

    return step


CONTENDER = Contender(
    "redun",
    "redun",
    "value, call graph; SQLite",
    f"local executor, max_workers={THREADS}",
    run,
    slow=True,
    cannot={
        "layered 2,000": "not run: it pickles the whole nested expression for every step, which triples the "
        "time with each layer (10 layers of 8 steps took 11 s, 11 layers 31 s)"
    },
)
