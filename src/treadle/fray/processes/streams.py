"""The output of a worker: whatever a job does to it, the next job finds it whole."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TextIO

from treadle.fray.processes.start import Start


class _Stream:
    """One of the two, with a spare of its file descriptor."""

    def __init__(self, name: str, fd: int) -> None:
        self._name = name
        self._fd = fd
        self._spare = os.dup(fd)
        self._is = _identity(fd)
        self._file = self._opened()

    def flush(self) -> None:
        """Let all that was printed go."""
        current = getattr(sys, self._name)
        _flush(current)
        if current is not self._file:
            _flush(self._file)

    def restore(self) -> None:
        """Put back what the job has closed or replaced."""
        setattr(sys, self._name, self._file)
        if _identity(self._fd) != self._is:
            os.dup2(self._spare, self._fd)
        if not _flush(self._file):
            self._file = self._opened()

    def _opened(self) -> TextIO:
        raw = io.FileIO(self._fd, "w", closefd=False)  # a job that closes the file leaves us the descriptor
        file = io.TextIOWrapper(
            io.BufferedWriter(raw), "utf-8", errors="backslashreplace", line_buffering=True
        )
        setattr(sys, self._name, file)
        setattr(sys, f"__{self._name}__", file)
        return file


class Streams:
    """Both of them. Lines go out as they are printed."""

    def __init__(self) -> None:
        self._both = [_Stream("stdout", 1), _Stream("stderr", 2)]

    def flush(self) -> None:
        """At the end of a job: all that it has printed is on its way."""
        for each in self._both:
            each.flush()

    def restore(self) -> None:
        """After a job: nothing stays of what it did to them."""
        for each in self._both:
            each.restore()


def drain(start: Start) -> None:
    """Throw away what is printed, for ever: nobody reads it any more."""
    waiting = select.poll()
    for fd in (start.out, start.err):
        waiting.register(fd, select.POLLIN)
    while True:
        for fd, _ in waiting.poll():
            os.read(fd, 1 << 16)


def _flush(file: TextIO | None) -> bool:
    """Whether the file is of use still."""
    try:
        if file is not None:
            file.flush()
    except (OSError, ValueError):  # closed, or led to somewhere that takes nothing any more
        return False
    return True


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino
