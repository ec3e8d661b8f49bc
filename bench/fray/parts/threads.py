"""What a job that does nothing costs on `ThreadClient`, against a bare thread pool."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue

from bench.fray.side_by_side import Row, rows_of, side_by_side
from bench.fray.work import nothing
from treadle.fray import JobRequest, ThreadClient

WORKERS = 4
JOBS = 20_000
RUNS = 5
ABOUT = (
    f"{JOBS:,} jobs that do nothing, {WORKERS} threads. Burst: all are submitted at once. In flight: as a "
    f"runner does it, {WORKERS} at a time, the next one when the callback of an earlier one has come. The "
    f"pool copies the context of the submitter too. Medians of {RUNS} runs, for one job."
)

Submit = Callable[[Callable[[], object], Callable[[object], object]], object]


def in_flight(submit: Submit, at_once: int = WORKERS) -> None:
    """Work off the jobs, `at_once` at a time."""
    ended: SimpleQueue[object] = SimpleQueue()
    for number in range(JOBS + at_once):
        if number >= at_once:
            ended.get()
        if number < JOBS:
            submit(nothing, ended.put)


def burst(submit: Submit) -> None:
    """Submit all, then wait for all."""
    in_flight(submit, at_once=JOBS)


def on_client(work: Callable[[Submit], None]) -> None:
    with ThreadClient(WORKERS) as client:
        work(lambda fn, then: client.submit(JobRequest("job", fn)).add_done_callback(then))


def on_pool(work: Callable[[Submit], None]) -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        work(lambda fn, then: pool.submit(contextvars.copy_context().run, fn).add_done_callback(then))


def rows() -> Iterator[Row]:
    for name, work in (("burst", burst), ("in flight", in_flight)):
        contenders = {
            "ThreadClient": partial(on_client, work),
            "ThreadPoolExecutor": partial(on_pool, work),
        }
        yield from rows_of(name, side_by_side(contenders, JOBS, RUNS), "ThreadClient")
