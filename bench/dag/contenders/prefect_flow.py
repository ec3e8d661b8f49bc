"""Prefect: one submitted task a step, results kept, its own temporary server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, work


@contextmanager
def service(folder: Path) -> Iterator[None]:
    """A server and a database in the folder."""
    os.environ.update(
        PREFECT_HOME=str(folder / "prefect"),
        PREFECT_LOCAL_STORAGE_PATH=str(folder / "prefect" / "storage"),
        PREFECT_LOGGING_LEVEL="CRITICAL",
        PREFECT_LOGGING_TO_API_ENABLED="false",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE="true",
        PREFECT_API_URL="",
        DO_NOT_TRACK="1",
    )
    yield


def run(needs: Needs, store: Path) -> object:
    """One flow."""
    from prefect import flow, task
    from prefect.cache_policies import INPUTS
    from prefect.task_runners import ThreadPoolTaskRunner

    @task(persist_result=True, cache_policy=INPUTS)
    def step(key: int, values: list[int], store: str) -> int:  # noqa: ARG001 - so that stores differ
        return work(key, *values)

    @flow(task_runner=ThreadPoolTaskRunner(max_workers=THREADS))
    def graph() -> None:
        futures: dict[int, Any] = {}
        for key, some in needs.items():
            futures[key] = step.submit(key, [futures[each] for each in some], store.name)
        for each in futures.values():
            each.result()

    return graph()


CONTENDER = Contender(
    "Prefect",
    "prefect",
    "value, state, history; server",
    f"ThreadPoolTaskRunner(max_workers={THREADS}), cache_policy=INPUTS, logs off, temporary server on SQLite",
    run,
    service=service,
    slow=True,
)
