"""A bounded number of slots, each held by a thread that works.

A worker that ends hands its slot on: first to one that was parked and wants to go on, then to
waiting work, else back. Nobody who waits holds a slot, so the slots can never all be waited with.

Threads are kept a moment for the next work, since opening one costs more than most of what is handed
over. There are never more of these idle threads than slots.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

KEEP_ALIVE_S = 1.0
"""How long an idle thread waits for work, in seconds."""

Work = Callable[[], None]


class Slots:
    """`count` slots for pieces of work, started in the order in which they came."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._begin()
        _alive.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._free = self._count
        self._pending: deque[Work] = deque()
        self._returning: deque[threading.Event] = deque()
        # What the idle threads wait at, and how many of them nothing has been put there for. It is
        # filled under the lock only, so that a thread can leave and know that nothing was meant for it.
        self._handed: SimpleQueue[Work | None] = SimpleQueue()
        self._idle = 0
        self._closed = False

    def after_fork(self) -> None:
        """In the child of a fork, which has none of the threads, and whose work is the parent's."""
        closed = self._closed
        self._begin()
        self._closed = closed

    def start(self, work: Work) -> None:
        """Run `work` in a thread as soon as a slot is free."""
        with self._lock:
            if not self._free:
                self._pending.append(work)
                return
            self._free -= 1
            if self._to_idle(work):
                return
        try:
            self._open_thread(work)
        except BaseException:
            with self._lock:
                self._free += 1
            raise

    def give_up(self) -> None:
        """Of a worker that will wait: its slot goes to who needs it now."""
        with self._lock:
            work = self._hand_on()
            if work is None or self._to_idle(work):
                return
        try:
            self._open_thread(work)
        except BaseException:  # no thread is to be had: the slot stays here, and the work in the queue
            with self._lock:
                self._pending.appendleft(work)
            raise

    def take_back(self) -> None:
        """Of a worker that has waited: go on when there is a slot again."""
        turn = threading.Event()
        self.take_back_when(turn)
        turn.wait()

    def take_back_when(self, turn: threading.Event) -> None:
        """As `take_back`, but set `turn` when the slot is there, which may be at once.

        What its `set` does must not come back here.
        """
        with self._lock:
            if not self._free:
                self._returning.append(turn)
                return
            self._free -= 1
        turn.set()

    def close(self) -> None:
        """Keep no idle threads any more; what waits for a slot is still worked off."""
        with self._lock:
            self._closed = True
            while self._to_idle(None):
                pass

    def _to_idle(self, work: Work | None) -> bool:
        """Hand the work, or with None the leave to end, to an idle thread; False when there is none."""
        if not self._idle:
            return False
        self._idle -= 1
        self._handed.put(work)
        return True

    def _open_thread(self, work: Work) -> None:
        first = [work]  # a thread keeps its arguments for as long as it runs
        threading.Thread(target=self._work_off, args=(first,), name="treadle-job", daemon=True).start()

    def _work_off(self, first: list[Work]) -> None:
        work: Work | None = first.pop()
        while work is not None:
            work()
            with self._lock:
                work = self._hand_on()
                stay = work is None and self._idle < self._count and not self._closed
                self._idle += stay
            if stay:
                work = self._next_handed()

    def _next_handed(self) -> Work | None:
        try:
            return self._handed.get(timeout=KEEP_ALIVE_S)
        except Empty:
            pass
        with self._lock:
            try:
                return self._handed.get_nowait()
            except Empty:
                self._idle -= 1
                return None

    def _hand_on(self) -> Work | None:
        """Work for the slot that its holder gives up; None when somebody else has it now."""
        if self._returning:
            self._returning.popleft().set()
            return None
        if self._pending:
            return self._pending.popleft()
        # In the child of a fork the slot of the job that forked is not counted as taken.
        self._free = min(self._free + 1, self._count)
        return None


_alive: weakref.WeakSet[Slots] = weakref.WeakSet()


def _after_fork() -> None:
    for each in tuple(_alive):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)


class Slot:
    """The slot of one worker, given up while at least one of the threads of its work waits.

    It may be another thread than the worker's that waits, while the worker waits for that thread.
    """

    __slots__ = ("_ended", "_lock", "_slots", "_waiting")

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
