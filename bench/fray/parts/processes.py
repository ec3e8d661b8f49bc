"""Units and jobs on `ProcessClient`, against `ProcessPoolExecutor` and joblib."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context

from bench.fray.side_by_side import Row, rows_of, side_by_side
from bench.fray.work import millisecond, nothing
from treadle.fray import JobRequest
from treadle.fray.mapping.job_map import job_map
from treadle.fray.processes import ProcessClient

WORKERS = os.cpu_count() or 1
UNITS, SLEEPERS, JOBS, RUNS = 20_000, 2_000, 2_000, 5
ABOUT = (
    f"{WORKERS} worker processes, started before; the pool's by `forkserver`. {UNITS:,} units that do "
    f"nothing, {SLEEPERS:,} that sleep for 1 ms, and {JOBS:,} single jobs, submitted at once and waited for. "
    "`job_map` finds its batches itself; `map` of the pool is given several chunk sizes, and the best "
    f"is the one that is fastest here and now; joblib (its backend loky, when it is installed) finds its "
    f"batches itself, too. Medians of {RUNS} runs, for one unit or job."
)
CHUNKS = {"nothing": (10, 100, 1_000, 2_500), "1 ms": (10, 50, 250)}


def rows() -> Iterator[Row]:
    with (
        ProcessClient(WORKERS) as client,
        ProcessPoolExecutor(WORKERS, mp_context=get_context("forkserver")) as pool,
    ):
        yield from _units("nothing", nothing, UNITS, client, pool)
        yield from _units("1 ms", millisecond, SLEEPERS, client, pool)
        jobs = {
            "ProcessClient.submit": partial(_submit_all, client),
            "ProcessPoolExecutor.submit": partial(_submit_all_to_pool, pool),
        }
        yield from rows_of("single jobs", side_by_side(jobs, JOBS, RUNS), "ProcessClient.submit")


def _units(
    work: str,
    fn: Callable[[object], None],
    count: int,
    client: ProcessClient,
    pool: ProcessPoolExecutor,
) -> list[Row]:
    contenders: dict[str, Callable[[], object]] = {
        "job_map": lambda: deque(job_map(fn, range(count), client=client), maxlen=0)
    }
    single, *chunked = (f"pool, chunks of {chunk:,}" for chunk in (1, *CHUNKS[work]))
    for name, chunk in zip((single, *chunked), (1, *CHUNKS[work]), strict=True):
        contenders[name] = partial(_pool_map, pool, fn, count, chunk)
    if find_spec("joblib"):
        contenders["joblib"] = partial(_joblib_map, fn, count)
    costs = side_by_side(contenders, count, RUNS)
    best = min(chunked, key=lambda name: costs[name].wall)
    shown = {name: cost for name, cost in costs.items() if name not in chunked}
    return rows_of(f"units, {work}", {**shown, f"{best} (best)": costs[best]}, "job_map")


def _pool_map(pool: ProcessPoolExecutor, fn: Callable[[object], None], count: int, chunk: int) -> None:
    deque(pool.map(fn, range(count), chunksize=chunk), maxlen=0)


def _joblib_map(fn: Callable[[object], None], count: int) -> None:
    from joblib import Parallel, delayed

    Parallel(WORKERS, backend="loky")(delayed(fn)(number) for number in range(count))


def _submit_all(client: ProcessClient) -> None:
    for job in [client.submit(JobRequest("job", nothing)) for _ in range(JOBS)]:
        job.result()


def _submit_all_to_pool(pool: ProcessPoolExecutor) -> None:
    for job in [pool.submit(nothing) for _ in range(JOBS)]:
        job.result()
