"""Three stages with bounded queues between them: read, process, write.

    reader thread --queue--> processor thread --queue--> writer (the caller's thread)

Each queue holds at most `depth` items, and nothing is added while what was read and is not yet written weighs
`MOST_BYTES`, so memory does not grow with the input. An error in any stage wakes the other two, and the first
error is the one raised. When `run_three_stages` returns or raises, no thread of it is left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from treadle.errors import ArgumentError
from treadle.kernel.ambient import carry
from treadle.processing.belt import Belt, Load, Queue

A = TypeVar("A")
B = TypeVar("B")

Timed = Callable[[str], AbstractContextManager[object]]
"""Called with "read", "process" or "write"; the block it returns holds the working time of that stage."""


Depths = Callable[[str, int], object]
"""Called with "process" or "write" and how many items wait for that stage."""


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
    belt = Belt()
    raw: Queue[A] = Queue(belt, depth, _told(depths, "process"))
    results: Queue[B] = Queue(belt, depth, _told(depths, "write"))
    stages = _Stages(belt, raw, results, Load(belt), timed)
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="treadle-stage") as pool, belt.stage():
        pool.submit(carry(stages.read), read, weigh or _weightless)
        pool.submit(carry(stages.process), process)
        stages.write(write)
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


@dataclass(frozen=True)
class _Stages(Generic[A, B]):
    """What each of the three does, each in its own thread.

    What a stage has handed on it lets go of at once (`del`), or it would be kept while the stage waits.
    """

    belt: Belt
    raw: Queue[A]
    results: Queue[B]
    load: Load
    timed: Timed

    def read(self, read: Callable[[], Iterator[A]], weigh: Callable[[A], int]) -> None:
        with self.belt.stage(), self.raw.filling(), closing_iterator(read()) as items:
            for item in timed_items(items, self.timed, "read"):
                self.load.add(weigh(item))
                self.raw.put(item)
                del item

    def process(self, process: Callable[[A], B]) -> None:
        with self.belt.stage(), self.results.filling():
            for item in self.raw:
                with self.timed("process"):
                    result = process(item)
                del item
                self.results.put(result)
                del result

    def write(self, write: Callable[[B], object]) -> None:
        for result in self.results:
            with self.timed("write"):
                write(result)
            del result
            self.load.drop()


def _weightless(_item: object) -> int:
    return 0


def _told(depths: Depths | None, stage: str) -> Callable[[int], object]:
    return _untold if depths is None else partial(depths, stage)


def _untold(_waiting: int) -> None:
    """Nobody asked."""
