"""SIGTERM as an exception, so that what a process has under way is given back as after Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from treadle.errors import StoppedError

TERMINATED = 128 + signal.SIGTERM
"""The exit code of a process that was told to end."""


class Terminated(SystemExit):
    """The process was told to end by SIGTERM; where nobody takes it, it ends with the code 143."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)

    def __reduce__(self) -> tuple[type[Terminated], tuple[()]]:
        return type(self), ()


class OnSigterm:
    """The handler that raises `Terminated`, once: a second signal does not tear the clean-up.

    The child of a fork ends at once, as without it.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self.told = False

    def __call__(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what a handler gets
        """Take the signal."""
        if os.getpid() != self._pid:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if not self.told:
            self.told = True
            raise Terminated


def told_to_end() -> bool:
    """Whether SIGTERM came while `raising_terminated` was in force."""
    handler = signal.getsignal(signal.SIGTERM)
    return isinstance(handler, OnSigterm) and handler.told


@contextmanager
def raising_terminated() -> Iterator[None]:
    """A block in which SIGTERM raises `Terminated` in the main thread, unless it means something already.

    A process that was told to end is not torn from its clean-up by being told again, until its very end. What
    is raised inside a callback of the interpreter, of garbage collection say, is lost there: then work that
    asks `stop_requested` stops by itself, and that counts as the same.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    handler = OnSigterm()
    signal.signal(signal.SIGTERM, handler)
    try:
        yield
    except StoppedError as error:
        if handler.told:
            raise Terminated from error
        raise
    finally:
        # The interpreter takes a handler out on its way down, but leaves alone what is ignored.
        signal.signal(signal.SIGTERM, signal.SIG_IGN if handler.told else signal.SIG_DFL)
