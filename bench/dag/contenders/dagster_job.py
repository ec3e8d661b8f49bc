"""Dagster: one op a step, executed in this process with an instance in memory."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import Needs, work


def run(needs: Needs, _: Path) -> object:
    """With its instance on disk a step takes about ten times as long."""
    import dagster

    dependencies = {
        f"s{key}": {f"i{each}": dagster.DependencyDefinition(f"s{each}") for each in some}
        for key, some in needs.items()
    }
    graph = dagster.GraphDefinition(
        "graph", node_defs=[_op(key, some) for key, some in needs.items()], dependencies=dependencies
    )
    job = graph.to_job(logger_defs={"silent": _silent()}, config={"loggers": {"silent": {}}})
    with dagster.DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(instance=instance)


def _silent() -> Any:
    import dagster

    silent = logging.Logger("silent", logging.CRITICAL)
    return dagster.LoggerDefinition(lambda _: silent)


def _op(key: int, some: tuple[int, ...]) -> Any:
    import dagster

    def compute(_, inputs):  # type: ignore[no-untyped-def] # dagster refuses annotations here
        yield dagster.Output(work(key, *inputs.values()))

    return dagster.OpDefinition(
        compute_fn=compute,
        name=f"s{key}",
        ins={f"i{each}": dagster.In(int) for each in some},
        outs={"result": dagster.Out(int)},
    )


CONTENDER = Contender(
    "Dagster",
    "dagster",
    "nothing (events in memory)",
    "execute_in_process, ephemeral instance, log off; one thread",
    run,
    warm=False,
    slow=True,
)
