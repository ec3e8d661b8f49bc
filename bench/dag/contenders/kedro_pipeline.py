"""Kedro: one node a step, its thread runner, one pickled dataset each."""

from __future__ import annotations

import logging
import pickle
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, work


def run(needs: Needs, store: Path) -> object:
    """Run what is missing."""
    from kedro.io import DataCatalog
    from kedro.pipeline import Pipeline, node
    from kedro.runner import ThreadRunner

    logging.getLogger("kedro").setLevel(logging.ERROR)
    store.mkdir(parents=True, exist_ok=True)
    catalog = DataCatalog({f"s{key}": _dataset()(store / f"{key}.pickle") for key in needs})
    nodes = [
        node(partial(work, key), [f"s{each}" for each in some] or None, f"s{key}", name=f"n{key}")
        for key, some in needs.items()
    ]
    return ThreadRunner(max_workers=THREADS).run(Pipeline(nodes), catalog, only_missing_outputs=True)


@cache
def _dataset() -> Any:
    from kedro.io import AbstractDataset

    class Pickled(AbstractDataset):  # kedro's own pickle dataset is in another package
        def __init__(self, path: Path) -> None:
            self.path = path

        def load(self) -> int:
            return int(pickle.loads(self.path.read_bytes()))

        def save(self, data: int) -> None:
            self.path.write_bytes(pickle.dumps(data))

        def _exists(self) -> bool:
            return self.path.exists()

        def _describe(self) -> dict[str, Any]:
            return {"path": str(self.path)}

    return Pickled


CONTENDER = Contender(
    "Kedro",
    "kedro",
    "value, one file a step",
    f"ThreadRunner(max_workers={THREADS}), only_missing_outputs",
    run,
)
