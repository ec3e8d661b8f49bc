"""The last lines of what a job has printed, in bounded memory."""

from __future__ import annotations

import os
import threading
from collections import deque

from treadle.fray.capture import Kind
from treadle.fray.checks import check_count
from treadle.fray.lines import Lines

KEPT_LINES = 1_000
"""How many lines are kept of each job."""

KEPT_CHARACTERS = 1 << 20
"""How many characters are kept of each job, in whole lines but for the last."""

LONGEST_LINE = 1 << 16
"""Characters; a longer line is broken."""

# One for all: a log is made for each job that prints, and is written to for moments. Reentrant, since a
# signal handler or a finaliser may print in the middle of a write.
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


# A thread that holds the lock at a fork is not there in the child, which would wait for ever.
os.register_at_fork(after_in_child=_renew_lock)


class JobLog:
    """Takes output in pieces, from any thread; lines of different streams do not mix."""

    __slots__ = ("_kept", "_size", "_unended", "_unfinished")

    def __init__(self) -> None:
        self._kept: deque[str] = deque()
        self._size = 0
        self._unfinished: dict[Kind, Lines] = {}
        self._unended: dict[Kind, int] = {}

    def write(self, kind: Kind, piece: str | bytes) -> None:
        """Take a piece of output."""
        with _lock:
            lines = self._unfinished.get(kind)
            if lines is None:
                lines = self._unfinished[kind] = Lines()
            for start in range(0, len(piece), LONGEST_LINE):
                self._feed(kind, lines, piece[start : start + LONGEST_LINE])

    def tail(self, max_lines: int = 100) -> list[str]:
        """The last lines, unfinished ones included, without line ends.

        Raises:
            ArgumentError: `max_lines` is no whole number of at least 1.
        """
        check_count("max_lines", max_lines)
        with _lock:
            begun = [line for each in self._unfinished.values() if (line := each.unfinished()).strip()]
            return [*self._kept, *begun][-max_lines:]

    def _feed(self, kind: Kind, lines: Lines, piece: str | bytes) -> None:
        ended = lines.feed(piece)
        self._unended[kind] = len(piece) + (0 if ended else self._unended.get(kind, 0))
        if self._unended[kind] > LONGEST_LINE:
            ended += lines.rest()
            self._unended[kind] = 0
        for line in ended:
            self._keep(line)

    def _keep(self, line: str) -> None:
        self._kept.append(line)
        self._size += len(line)
        while len(self._kept) > KEPT_LINES or self._size > KEPT_CHARACTERS:
            self._size -= len(self._kept.popleft())
