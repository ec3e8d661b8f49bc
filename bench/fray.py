"""What a job that does nothing costs on `ThreadClient`, against a bare thread pool.

`burst`: all jobs are submitted at once. `in flight`: as a runner does it, a few at a time, the next
one when the callback of an earlier one has come. The pool copies the context of the submitter too.
Medians of five runs, in CPU and wall microseconds a job.

python bench/fray.py
"""

from __future__ import annotations

import contextvars
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from treadle.fray import JobRequest, ThreadClient

WORKERS = 4
JOBS = 20_000

Submit = Callable[[Callable[[], object], Callable[[object], object]], object]


def nothing() -> None:
    pass


def in_flight(submit: Submit, jobs: int, at_once: int = WORKERS) -> None:
    """Work off `jobs` jobs, `at_once` at a time."""
    ended: SimpleQueue[object] = SimpleQueue()
    for number in range(jobs + at_once):
        if number >= at_once:
            ended.get()
        if number < jobs:
            submit(nothing, ended.put)


def burst(submit: Submit, jobs: int) -> None:
    """Submit `jobs` jobs, then wait for all."""
    in_flight(submit, jobs, at_once=jobs)


def on_client(work: Callable[[Submit, int], None], jobs: int) -> None:
    with ThreadClient(WORKERS) as client:
        work(lambda fn, then: client.submit(JobRequest("job", fn)).add_done_callback(then), jobs)


def on_pool(work: Callable[[Submit, int], None], jobs: int) -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        work(
            lambda fn, then: pool.submit(contextvars.copy_context().run, fn).add_done_callback(then),
            jobs,
        )


def median_cost(work: Callable[[], None], runs: int = 5) -> tuple[float, float]:
    """The median CPU and wall seconds of `runs` runs."""
    costs = []
    for _ in range(runs):
        began = time.process_time(), time.perf_counter()
        work()
        costs.append((time.process_time() - began[0], time.perf_counter() - began[1]))
    return statistics.median(cpu for cpu, _ in costs), statistics.median(wall for _, wall in costs)


def main() -> None:
    for name, work in (("burst", burst), ("in flight", in_flight)):
        for where, run in (("ThreadClient", on_client), ("ThreadPoolExecutor", on_pool)):
            cpu, wall = median_cost(lambda work=work, run=run: run(work, JOBS))  # type: ignore[misc]
            print(f"{name:>9}  {where:<18}  {cpu / JOBS * 1e6:6.1f} us CPU  {wall / JOBS * 1e6:6.1f} us wall")


if __name__ == "__main__":
    main()
