"""A bounded number of slots, each held by a thread that works.

A worker that ends hands its slot on: first to one that was parked and wants to go on, then to
waiting work, else back. Nobody who waits holds a slot, so the slots can never all be waited with.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Slots:
    """`count` slots for pieces of work, started in the order in which they came."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._pending: deque[Callable[[], None]] = deque()
        self._returning: deque[threading.Event] = deque()

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread as soon as a slot is free."""
        with self._lock:
            if not self._free:
                self._pending.append(work)
                return
            self._free -= 1
        self._open_thread(work)

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Give the slot of the calling worker up for the block; go on when there is one again."""
        if (work := self._hand_on()) is not None:
            self._open_thread(work)
        try:
            yield
        finally:
            self._return()

    def _open_thread(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._work_off, args=(work,), name="treadle-job", daemon=True)
        try:
            thread.start()
        except BaseException:
            with self._lock:
                self._free += 1
            raise

    def _work_off(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            work = self._hand_on()

    def _hand_on(self) -> Callable[[], None] | None:
        """Work for the slot that its holder gives up; None when somebody else has it now."""
        with self._lock:
            if self._returning:
                self._returning.popleft().set()
                return None
            if self._pending:
                return self._pending.popleft()
            self._free += 1
            return None

    def _return(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Event()
            self._returning.append(turn)
        turn.wait()
