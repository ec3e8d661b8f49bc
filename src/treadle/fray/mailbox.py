"""The calls of one actor: let through one at a time, in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

C = TypeVar("C")


class Mailbox(Generic[C]):
    """Hands calls to `begin`, the next one when `ended` is called for the one before.

    `begin(call)` sets a call going and returns at once; False when there is nothing to do for it, such as for
    one that was stopped meanwhile, and then the next one is let through. It raises nothing: what keeps a call
    from beginning is the outcome of that call.

    A mailbox holds no thread and no place: only `begin` takes them, so an idle actor takes none.
    """

    def __init__(self, begin: Callable[[C], bool]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._waiting: deque[C] = deque()
        self._busy = False

    def put(self, call: C) -> None:
        """Let the call through when all that came before it have ended."""
        with self._lock:
            self._waiting.append(call)
            if self._busy:
                return
            self._busy = True
        self._let_through()

    def ended(self) -> None:
        """The call that was let through last has ended."""
        self._let_through()

    def clear(self) -> list[C]:
        """Take out the calls that have not begun."""
        with self._lock:
            calls = list(self._waiting)
            self._waiting.clear()
            return calls

    def _let_through(self) -> None:
        while True:  # no recursion: a thousand stopped calls in a row are no depth
            with self._lock:
                if not self._waiting:
                    self._busy = False
                    return
                call = self._waiting.popleft()
            if self._begin(call):
                return
