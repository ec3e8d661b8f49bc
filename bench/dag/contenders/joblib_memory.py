"""joblib has no graphs: the driver of the floor calls a function under `joblib.Memory`."""

from __future__ import annotations

from pathlib import Path

from bench.dag.contender import Contender
from bench.dag.contenders.floor import drive
from bench.dag.graphs import THREADS, Needs, work


def run(needs: Needs, store: Path) -> object:
    """Each call is one entry of the cache."""
    import joblib

    return drive(needs, joblib.Memory(store, verbose=0).cache(work))


CONTENDER = Contender(
    "joblib.Memory",
    "joblib",
    "value, arguments; a folder a step",
    f"the floor's driver, {THREADS} threads, over Memory.cache (faster than its Parallel, which polls)",
    run,
)
