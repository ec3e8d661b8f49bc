"""Ray: one task a step, on four workers of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, sinks, work


@contextmanager
def service(_: Path) -> Iterator[None]:
    """A cluster of one node."""
    import ray

    ray.init(num_cpus=THREADS, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()


def run(needs: Needs, _: Path) -> object:
    """References carry the values."""
    import ray

    task = ray.remote(work)
    refs: dict[int, Any] = {}
    for key, some in needs.items():
        refs[key] = task.remote(key, *(refs[each] for each in some))
    return ray.get([refs[key] for key in sinks(needs)])


CONTENDER = Contender(
    "Ray",
    "ray",
    "nothing",
    f"ray.init(num_cpus={THREADS}), worker processes; their start is not part of the time",
    run,
    warm=False,
    counts=False,
    service=service,
)
