"""dask: its threaded scheduler on a plain graph, which is faster than `dask.delayed`."""

from __future__ import annotations

from pathlib import Path

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, sinks, work


def run(needs: Needs, _: Path) -> object:
    """One task a step."""
    from dask._task_spec import Task, TaskRef
    from dask.threaded import get

    graph = {
        f"s{key}": Task(f"s{key}", work, key, *(TaskRef(f"s{each}") for each in some))
        for key, some in needs.items()
    }
    return get(graph, [f"s{key}" for key in sinks(needs)], num_workers=THREADS)


CONTENDER = Contender(
    "dask threads", "dask", "nothing", f"dask.threaded.get, num_workers={THREADS}", run, warm=False
)
