"""Luigi: one task a step, one target file each, the local scheduler."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import Needs, sinks, work

_NEEDS: list[Needs] = []


def run(needs: Needs, store: Path) -> object:
    """Build the sinks."""
    import luigi

    logging.getLogger("luigi").setLevel(logging.ERROR)
    logging.getLogger("luigi-interface").setLevel(logging.ERROR)
    _NEEDS[:] = [needs]
    tasks = [_task()(key=key, store=str(store)) for key in sinks(needs)]
    if not luigi.build(tasks, local_scheduler=True, workers=1, log_level="ERROR", no_lock=True):
        raise RuntimeError("luigi.build failed")
    return tasks


@cache
def _task() -> Any:
    import luigi

    class Step(luigi.Task):
        key = luigi.IntParameter()
        store = luigi.Parameter()

        def requires(self) -> list[Any]:
            return [Step(key=each, store=self.store) for each in _NEEDS[0][self.key]]

        def output(self) -> Any:
            return luigi.LocalTarget(f"{self.store}/{self.key}")

        def run(self) -> None:
            values = [int(Path(each.path).read_text()) for each in self.input()]
            with self.output().open("w") as file:
                file.write(str(work(self.key, *values)))

    return Step


CONTENDER = Contender(
    "Luigi",
    "luigi",
    "value, one file a step",
    "local scheduler, workers=1: with more it forks a process a step; warm looks at the sinks only",
    run,
    slow=True,
)
