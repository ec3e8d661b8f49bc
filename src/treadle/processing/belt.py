"""What the stages of a pipeline hand items on by: queues with an end, and a limit to what is on its way.

All stages wait on one condition: a stage that waits for an item, for room, or for an error is woken by the
same notification, so none can miss it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

A = TypeVar("A")

MOST_BYTES: Final = 4 * 2**20
"""The reader waits while so much is on its way: a few batches keep all stages busy, more only take memory."""


class _Stopped(Exception):  # noqa: N818 - no error: the word by which a stage leaves when another one failed
    pass


class Belt:
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


class Load:
    """What the items weigh that are on their way, from the reader to the end of the writer, in order."""

    def __init__(self, belt: Belt) -> None:
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


class Queue(Generic[A]):
    """A bounded first-in first-out queue with an end."""

    def __init__(self, belt: Belt, depth: int, tell: Callable[[int], object]) -> None:
        self._belt = belt
        self._tell = tell
        self._depth = depth
        self._items: deque[A] = deque()
        self._ended = False

    def put(self, item: A) -> None:
        """Wait until there is room; then `tell` how many items are there."""
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
