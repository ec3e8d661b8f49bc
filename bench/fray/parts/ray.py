"""Units on `RayClient`, against plain Ray tasks and its pool of actors."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.fray.side_by_side import Row, rows_of, side_by_side
from bench.fray.work import each_of, millisecond, nothing
from treadle.extras import check_extra
from treadle.fray.mapping.job_map import job_map

WORKERS = os.cpu_count() or 1
UNITS, RUNS, CHUNK = 2_000, 3, 50
ABOUT = (
    f"{UNITS:,} units on one Ray cluster of {WORKERS} CPUs, started before. Plain tasks: "
    "`ray.get([task.remote(unit) for unit in units])`; the pool: `ray.util.ActorPool.map` with an actor for "
    "each CPU, made before. Both take one unit at a time, and `job_map` its batches: that is most of the "
    f"difference, so there are plain tasks of {CHUNK} units, too. Medians of {RUNS} runs, for one unit."
)


class Worker:
    """The actor of the pool."""

    def call(self, fn: Callable[[object], None], unit: object) -> None:
        fn(unit)


def rows() -> Iterator[Row]:
    check_extra("ray", "this part", "ray")
    import ray

    from treadle.fray.ray import RayClient

    with RayClient(max_workers=WORKERS) as client:
        # Actors that hold no CPU, so that tasks and jobs can run beside them.
        actors = [ray.remote(Worker).options(num_cpus=0).remote() for _ in range(WORKERS)]
        for work, fn in (("nothing", nothing), ("1 ms", millisecond)):
            contenders: dict[str, Callable[[], object]] = {
                "job_map": partial(_map, client, fn),
                "plain tasks": partial(_tasks, ray.remote(fn)),
                f"plain tasks of {CHUNK} units": partial(_chunks, ray.remote(each_of), fn),
                "ActorPool": partial(_pool, ray.util.ActorPool(actors), fn),
            }
            yield from rows_of(f"units, {work}", side_by_side(contenders, UNITS, RUNS), "job_map")


def _map(client: Any, fn: Callable[[object], None]) -> None:
    deque(job_map(fn, range(UNITS), client=client), maxlen=0)


def _tasks(task: Any) -> None:
    import ray

    ray.get([task.remote(unit) for unit in range(UNITS)])


def _chunks(task: Any, fn: Callable[[object], None]) -> None:
    import ray

    ray.get([task.remote(fn, range(first, first + CHUNK)) for first in range(0, UNITS, CHUNK)])


def _pool(pool: Any, fn: Callable[[object], None]) -> None:
    deque(pool.map(lambda actor, unit: actor.call.remote(fn, unit), range(UNITS)), maxlen=0)
