"""flytekit: local execution of cached tasks, one after the other, since it has no more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import Needs, work


@contextmanager
def service(folder: Path) -> Iterator[None]:
    """Put its local cache into the folder."""
    os.environ["FLYTE_LOCAL_CACHE_ENABLED"] = "true"
    from flytekit.core import local_cache

    local_cache.CACHE_LOCATION = str(folder / "flyte-cache")
    yield


def run(needs: Needs, store: Path) -> object:
    """Call the tasks in order; the name of the store is part of each call, so that stores differ."""
    task, values = _task(), dict[int, int]()
    for key, some in needs.items():
        values[key] = task(key=key, values=[values[each] for each in some], store=store.name)
    return values


@cache
def _task() -> Any:
    from flytekit import task

    return task(_step, cache=True, cache_version="1")


def _step(key: int, values: list[int], store: str) -> int:  # noqa: ARG001 - flytekit wants it in a module
    return work(key, *values)


CONTENDER = Contender(
    "flytekit",
    "flytekit",
    "value; diskcache",
    "local execution, cache=True; one thread",
    run,
    service=service,
)
