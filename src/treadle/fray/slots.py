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
        try:
            self._open_thread(work)
        except BaseException:
            with self._lock:
                self._free += 1
            raise

    def give_up(self) -> None:
        """Of a worker that will wait: its slot goes to who needs it now."""
        if (work := self._hand_on()) is not None:
            try:
                self._open_thread(work)
            except BaseException:  # no thread is to be had: the slot stays here, and the work in the queue
                with self._lock:
                    self._pending.appendleft(work)
                raise

    def take_back(self) -> None:
        """Of a worker that has waited: go on when there is a slot again."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Event()
            self._returning.append(turn)
        turn.wait()

    def _open_thread(self, work: Callable[[], None]) -> None:
        threading.Thread(target=self._work_off, args=(work,), name="treadle-job", daemon=True).start()

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


class Slot:
    """The slot of one worker, given up while at least one of the threads of its work waits.

    It may be another thread than the worker's that waits, while the worker waits for that thread.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._lock = threading.Lock()
        self._waiting = 0
        self._ended = False

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Give the slot up for the block."""
        with self._lock:
            if not self._waiting and not self._ended:
                self._slots.give_up()
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting and not self._ended:
                    self._slots.take_back()

    def end(self) -> None:
        """The work has ended: have the slot, so that it can be handed on, whoever still waits."""
        with self._lock:
            if self._waiting:
                self._slots.take_back()
            self._ended = True
