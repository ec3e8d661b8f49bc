"""Each step's own log: what its body prints and logs, line by line, in a file of its own.

    with capture():                                   # around a run; see `capture.py`
        with step_log("logs/train.log", "train", 1):  # around one attempt of a body
            print("hello")

    logs/train.log    2026-11-29T22:36:29.123Z train#1 stdout | hello
    terminal          train | hello

Which body runs is a context variable, so the threads that a body starts by `kernel.carry` belong to it.
What child processes write is not heard: they write to the file descriptors. When the body fails, its
traceback goes into the file as well.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextvars import Token
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from treadle.execution.blame import traceback_lines
from treadle.fray.capture import LISTENER, Kind, Listener, open_listener, outside
from treadle.fray.lines import Lines

# One for all, since whole lines must not mix on the terminal. Reentrant, since a signal handler or a
# finaliser may print in the middle of a write.
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


# A thread that holds the lock at a fork is not there in the child, which would wait for ever.
os.register_at_fork(after_in_child=_renew_lock)


def in_step() -> bool:
    """Whether the log of a step hears what is written here and now, be it by way of that of a job."""
    listener = open_listener(LISTENER.get())
    while listener is not None and not isinstance(listener, StepLog):
        listener = open_listener(listener.outer)
    return listener is not None


def step_log(path: str | os.PathLike[str], name: str, attempt: int, *, echo: bool = True) -> StepLog:
    """A `with` block in which what is printed and logged goes to the file `path`, while a `capture` is on.

    The file, and the folders above it, are made at the first line; later attempts are appended. With
    `echo` each line also goes where it would have gone without treadle, as `NAME | text`.

    Raises:
        OSError: on the first line or a later one, the file cannot be written.
    """
    return StepLog(path, name, attempt, echo=echo)


def note_end(path: str | os.PathLike[str], name: str, attempt: int, line: str) -> None:
    """Append to the file how an attempt ended that could not say so itself."""
    with step_log(path, name, attempt, echo=False) as log:
        log.write("error", f"{line}\n", None)


class StepLog:
    """One attempt of a body; see `step_log`. Lines of different streams do not mix, even when unfinished."""

    __slots__ = (
        "_attempt",
        "_file",
        "_lines",
        "_sinks",
        "_token",
        "closed",
        "echo",
        "name",
        "outer",
        "path",
    )
    _token: Token[Listener | None]

    def __init__(self, path: str | os.PathLike[str], name: str, attempt: int, *, echo: bool) -> None:
        self.path = path
        self.name = name
        self.echo = echo
        self.closed = False
        self._attempt = attempt
        self.outer: Listener | None = None
        self._lines: dict[Kind, Lines] = {}
        self._sinks: dict[Kind, TextIO | None] = {}
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        self.outer = LISTENER.get()
        self._token = LISTENER.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        LISTENER.reset(self._token)
        with _lock:
            try:
                self._put("error", traceback_lines(error) if error is not None else (), None)
                for stream, lines in self._lines.items():
                    self._put(stream, lines.rest(), self._sinks.get(stream))
            finally:
                self.closed = True
                if self._file is not None:
                    self._file.close()

    def write(self, kind: Kind, piece: str | bytes, sink: TextIO | None) -> None:
        """Take a piece of output; the lines that it completes are written. They are echoed to `sink`."""
        with _lock:
            if self.closed:  # a thread that outlives its body, and was just too late
                return
            lines = self._lines.setdefault(kind, Lines())
            self._sinks[kind] = sink
            self._put(kind, lines.feed(piece), sink)

    def _put(self, kind: Kind, lines: Iterable[str], sink: TextIO | None) -> None:
        for line in lines:
            now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
            file = self._file = self._file or self._opened()
            file.write(f"{now}Z {self.name}#{self._attempt} {kind} | {line}\n")
            file.flush()  # whoever follows the file sees each line, and a killed step loses none
            if self.echo and sink is not None:
                self.overhear(kind, text := f"{self.name} | {line}\n")
                outside(sink, text)

    def overhear(self, kind: Kind, piece: str) -> None:
        """What is echoed is nothing for this log, but for that of the job around it."""
        if (outer := open_listener(self.outer)) is not None:
            outer.overhear(kind, piece)

    def _opened(self) -> TextIO:
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a", encoding="utf-8", errors="backslashreplace", newline="\n")
