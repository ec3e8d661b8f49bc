"""The floor: `graphlib` and four threads, with nothing kept, and with one pickle a step."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from queue import SimpleQueue

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, work


def drive(needs: Needs, call: Callable[..., int]) -> dict[int, int]:
    """Bring the graph to its end with `call(key, *values)`, and give all values."""
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    values: dict[int, int] = {}
    ended: SimpleQueue[tuple[int, int]] = SimpleQueue()

    def body(key: int) -> None:
        ended.put((key, call(key, *(values[each] for each in needs[key]))))

    with ThreadPoolExecutor(THREADS) as pool:
        while sorter.is_active():
            for key in sorter.get_ready():
                pool.submit(body, key)
            key, values[key] = ended.get(timeout=60)  # a body that raises would never be heard of
            sorter.done(key)
    return values


def run_bare(needs: Needs, _: Path) -> object:
    """Nothing is kept."""
    return drive(needs, work)


def run_kept(needs: Needs, store: Path) -> object:
    """Each result is read where it lies, else made and written to a temporary name, then renamed."""
    store.mkdir(parents=True, exist_ok=True)
    return drive(needs, partial(_kept, store))


def _kept(store: Path, key: int, *values: int) -> int:
    path = store / f"{key}.pickle"
    if path.exists():
        return int(pickle.loads(path.read_bytes()))
    value = work(key, *values)
    part = path.with_suffix(".part")
    part.write_bytes(pickle.dumps(value))
    part.replace(path)
    return value


BARE = Contender(
    "floor: graphlib + threads", None, "nothing", f"ThreadPoolExecutor({THREADS})", run_bare, warm=False
)
KEPT = Contender(
    "floor + a pickle a step",
    None,
    "value, one file a step",
    f"ThreadPoolExecutor({THREADS}); temporary name, then renamed, no fsync; warm: each file found and read",
    run_kept,
)
