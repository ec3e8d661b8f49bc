"""doit: one Python task a step, its database of states in the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, work


def run(needs: Needs, store: Path) -> object:
    """Run `doit run` in this process."""
    from doit.cmd_base import ModuleTaskLoader
    from doit.doit_cmd import DoitMain

    store.mkdir(parents=True, exist_ok=True)
    module = {
        "DOIT_CONFIG": {"dep_file": str(store / "doit.db"), "reporter": "zero", "verbosity": 0},
        "task_step": lambda: _tasks(needs),
    }
    code = DoitMain(ModuleTaskLoader(module)).run(["run", "-n", str(THREADS), "-P", "thread"])
    if code:
        raise RuntimeError(f"doit ended with {code}")
    return code


def _tasks(needs: Needs) -> Iterator[dict[str, Any]]:
    from doit.tools import run_once

    for key, some in needs.items():
        yield {
            "name": str(key),
            "actions": [(_work, [key])],
            "task_dep": [f"step:{each}" for each in some],
            "uptodate": [run_once],
        }


def _work(key: int) -> dict[str, int]:
    return {"value": work(key)}


CONTENDER = Contender(
    "doit",
    "doit",
    "value, state; one database, written at the end",
    f"run -n {THREADS} -P thread, run_once; values do not flow between the steps",
    run,
)
