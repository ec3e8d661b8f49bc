"""Three stages with bounded queues between them: read, process, write.

    reader thread --queue--> processor thread --queue--> writer (the caller's thread)

Each queue holds at most `depth` items, and nothing is added while what was read and is not yet written weighs
`MOST_BYTES`, so memory does not grow with the input. An error in any stage wakes the other two, and the first
error is the one raised. When `run_three_stages` returns or raises,
no thread of it is left.

All three stages wait on one condition: a stage that waits for an item, for room, or for an error is
woken by the same notification, so none can miss it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from typing import Final, Generic, TypeVar

from treadle.errors import ArgumentError
from treadle.kernel.ambient import carry

A = TypeVar("A")
B = TypeVar("B")

Timed = Callable[[str], AbstractContextManager[object]]
"""Called with "read", "process" or "write"; the block it returns holds the working time of that stage."""


Depths = Callable[[str, int], object]
"""Called with "process" or "write" and how many items wait for that stage."""

MOST_BYTES: Final = 4 * 2**20
"""The reader waits while so much is on its way: a few batches keep all stages busy, more only take memory."""


def run_three_stages(
    read: Callable[[], Iterator[A]],
    process: Callable[[A], B],
    write: Callable[[B], object],
    *,
    depth: int,
    timed: Timed = nullcontext,
    depths: Depths | None = None,
    weigh: Callable[[A], int] | None = None,
) -> None:
    """Give every item of `read()` to `process`, and what comes back to `write`, in the order of reading.

    `read` and `process` run in threads of their own, under the context variables of the caller; `write` runs
    in the caller's thread. At most `2 * depth + 3` items exist at a time. Time spent waiting for another
    stage is not part of a stage's time. `depths` is told how many items wait for "process" and for "write"
    each time that one is put there. `weigh` tells the bytes of an item: see `MOST_BYTES`.

    Raises:
        ArgumentError: `depth` below 1.
        Whatever the first failing stage raised; KeyboardInterrupt counts as a failure of the writer.
    """
    if depth < 1:
        raise ArgumentError(f"queue depth must be at least 1, got {depth}")
    belt = _Belt()
    raw: _Queue[A] = _Queue(belt, depth, _told(depths, "process"))
    results: _Queue[B] = _Queue(belt, depth, _told(depths, "write"))
    load = _Load(belt)

    # What a stage has handed on it lets go of at once (`del`), or it would be kept while the stage waits.
    def reader() -> None:
        with belt.stage(), raw.filling(), closing_iterator(read()) as items:
            for item in timed_items(items, timed, "read"):
                load.add(weigh(item) if weigh is not None else 0)
                raw.put(item)
                del item

    def processor() -> None:
        with belt.stage(), results.filling():
            for item in raw:
                with timed("process"):
                    result = process(item)
                del item
                results.put(result)
                del result

    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="treadle-stage") as pool, belt.stage():
        pool.submit(carry(reader))
        pool.submit(carry(processor))
        for result in results:
            with timed("write"):
                write(result)
            del result
            load.drop()
    if belt.error is not None:
        raise belt.error


def timed_items(items: Iterator[A], timed: Timed, stage: str) -> Iterator[A]:
    """The same items; the time that each takes to come goes to `stage`."""
    while True:
        with timed(stage):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
        del item


def closing_iterator(items: Iterator[A]) -> AbstractContextManager[Iterator[A]]:
    """Close a generator on the way out, so that its files close in the thread that opened them."""
    return closing(items) if isinstance(items, Generator) else nullcontext(items)


def _told(depths: Depths | None, stage: str) -> Callable[[int], object]:
    return partial(depths, stage) if depths is not None else bool


class _Stopped(Exception):  # noqa: N818 - no error: the word by which a stage leaves when another one failed
    pass


class _Belt:
    """What the three stages share: the condition all of them wait on, and the first error."""

    def __init__(self) -> None:
        self.moved: Final = threading.Condition()
        self.error: BaseException | None = None

    @contextmanager
    def stage(self) -> Iterator[None]:
        """Keep the first error of any stage, and wake the others to leave."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - kept, and raised by `run_three_stages` at its end
            with self.moved:
                self.error = error if self.error is None else self.error
                self.moved.notify_all()

    def wait_for(self, ready: Callable[[], bool]) -> None:
        """Wait, holding `moved`, until `ready()`; leave when a stage has failed."""
        self.moved.wait_for(lambda: self.error is not None or ready())
        if self.error is not None:
            raise _Stopped


class _Load:
    """What the items weigh that are on their way, from the reader to the end of the writer, in order."""

    def __init__(self, belt: _Belt) -> None:
        self._belt = belt
        self._weights: deque[int] = deque()
        self._sum = 0

    def add(self, weight: int) -> None:
        """Wait until there is room."""
        with self._belt.moved:
            self._belt.wait_for(lambda: self._sum < MOST_BYTES)
            self._weights.append(weight)
            self._sum += weight

    def drop(self) -> None:
        """The first of them has been written."""
        with self._belt.moved:
            self._sum -= self._weights.popleft()
            self._belt.moved.notify_all()


class _Queue(Generic[A]):
    """A bounded first-in first-out queue with an end."""

    def __init__(self, belt: _Belt, depth: int, tell: Callable[[int], object]) -> None:
        self._belt = belt
        self._tell = tell
        self._depth = depth
        self._items: deque[A] = deque()
        self._ended = False

    def put(self, item: A) -> None:
        with self._belt.moved:
            self._belt.wait_for(lambda: len(self._items) < self._depth)
            self._items.append(item)
            waiting = len(self._items)
            self._belt.moved.notify_all()
        self._tell(waiting)

    @contextmanager
    def filling(self) -> Iterator[None]:
        """The block that puts; leaving it without an error ends the queue."""
        yield
        with self._belt.moved:
            self._ended = True
            self._belt.moved.notify_all()

    def __iter__(self) -> Iterator[A]:
        while True:
            with self._belt.moved:
                self._belt.wait_for(lambda: bool(self._items) or self._ended)
                if not self._items:
                    return
                item = self._items.popleft()
                self._belt.moved.notify_all()
            yield item
            del item
