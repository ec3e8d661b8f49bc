"""Waiting for several jobs at once, of any clients. Whoever waits gives its place to other jobs meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from treadle.fray.protocol import JobHandle, JobStatus
from treadle.fray.running_job import parked

T = TypeVar("T")

_NAMED = 5


def wait_all(
    handles: Iterable[JobHandle[Any]], timeout: float | None = None, *, raise_on_failure: bool = False
) -> list[JobStatus]:
    """Block until all jobs have ended, `timeout` seconds at most; their final statuses, in the same order.

    Raises:
        TimeoutError: some have not ended; names them.
        BaseException: with `raise_on_failure`, what `result` of a job raises, as soon as one has not
            succeeded; the others go on.
    """
    handles = list(handles)
    for place in _ends(handles, timeout):
        if raise_on_failure and handles[place].status() is not JobStatus.SUCCEEDED:
            handles[place].result()
    return [each.status() for each in handles]


def as_completed(handles: Iterable[JobHandle[T]], timeout: float | None = None) -> Iterator[JobHandle[T]]:
    """The jobs in the order in which they end; `timeout` seconds at most for all of them together.

    Raises:
        TimeoutError: some have not ended; names them.
    """
    handles = list(handles)
    for place in _ends(handles, timeout):
        yield handles[place]


def await_end(future: Future[Any], timeout: float | None = None) -> None:
    """Block until the future has ended or the time is up, whatever comes of it."""
    # Not `concurrent.futures.wait`: it does not see a future as ended that was cancelled and never begun.
    try:
        future.exception(timeout)
    except (CancelledError, TimeoutError):
        return


def _ends(handles: Sequence[JobHandle[Any]], timeout: float | None) -> Iterator[int]:
    """The places of the handles, each when its job has ended."""
    deadline = None if timeout is None else time.monotonic() + timeout
    ended: SimpleQueue[int] = SimpleQueue()
    for place, handle in enumerate(handles):
        handle.add_done_callback(partial(_told, ended.put, place))
    left = dict.fromkeys(range(len(handles)))
    while left:
        came = _next(ended, deadline)
        if came is None:
            raise TimeoutError(_still_running([handles[each].job_id for each in left], timeout))
        del left[came]
        yield came


def _told(tell: Callable[[int], object], place: int, _: JobHandle[Any]) -> None:
    tell(place)


def _next(ended: SimpleQueue[int], deadline: float | None) -> int | None:
    """The next place; None when the time is up."""
    try:
        return ended.get_nowait()
    except Empty:
        pass
    try:
        with parked():
            return ended.get(timeout=None if deadline is None else max(deadline - time.monotonic(), 0))
    except Empty:
        return None


def _still_running(ids: Sequence[str], timeout: float | None) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{len(ids)} jobs have not ended after {timeout} s: {', '.join(ids[:_NAMED])}{more}"
