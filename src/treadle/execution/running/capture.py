"""Brings what the bodies of steps print and log to their step logs, for as long as a run lasts.

Layers over the streams (see `fray/layers.py`) and a handler on the root logger ask whose body is running
(see `step_log.py`). What is written outside of a body passes through untouched.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, cast

from treadle.execution.running.step_log import in_step
from treadle.fray.capture import listening
from treadle.fray.layers import Layer, layered_streams

_installing = threading.Lock()


class LogHandler(logging.Handler):
    """Brings the log records of bodies to their logs; others go where they went without it."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        self.users = 0
        self._lowered = False

    def install(self) -> None:
        """Listen at the root. Where nobody has configured logging, INFO becomes the root's level."""
        self._lowered = not logging.root.handlers and logging.root.level == logging.WARNING
        if self._lowered:
            logging.root.setLevel(logging.INFO)
        logging.root.addHandler(self)

    def remove(self) -> None:
        """Undo `install`, unless logging has been configured in the meantime."""
        logging.root.removeHandler(self)
        if self._lowered and logging.root.level == logging.INFO:
            logging.root.setLevel(logging.WARNING)

    def handle(self, record: logging.LogRecord) -> bool:
        """Without the handler's lock: a step log has its own, and two are taken in either order."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record in the body that runs; echo it if no other handler takes it."""
        body, others = listening() if in_step() else None, self._others(record)
        if body is None:
            _last_resort(record, others)
        elif not any(_writes_to_layer(each, record) for each in others):
            try:
                body.write("log", self.format(record) + "\n", None if others else _plain_stderr())
            except Exception:  # noqa: BLE001 - logging says by itself what went wrong, and goes on
                self.handleError(record)

    def _others(self, record: logging.LogRecord) -> list[logging.Handler]:
        found: list[logging.Handler] = []
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            found += (each for each in logger.handlers if each is not self)
            logger = logger.parent if logger.propagate else None
        return found


def _last_resort(record: logging.LogRecord, others: list[logging.Handler]) -> None:
    """What logging does when there is no handler at all, as there would be without ours."""
    last = logging.lastResort
    if last is not None and not others and record.levelno >= last.level:
        last.handle(record)


def _writes_to_layer(handler: logging.Handler, record: logging.LogRecord) -> bool:
    """Whether the record will come to the log in any case, as what is written to a stream."""
    return record.levelno >= handler.level and isinstance(getattr(handler, "stream", None), Layer)


_handler = LogHandler()


@contextmanager
def capture() -> Iterator[None]:
    """Hear the bodies of steps for the length of the block. Captures may nest and overlap.

    The last one out puts the streams back. If somebody else has replaced a stream meanwhile, theirs
    stays, and the layer below it only passes on. Start a live display before the capture, not inside.
    """
    with layered_streams(), _logging_heard():
        yield


@contextmanager
def _logging_heard() -> Iterator[None]:
    with _installing:
        if not _handler.users:
            _handler.install()
        _handler.users += 1
    try:
        yield
    finally:
        with _installing:
            _handler.users -= 1
            if not _handler.users:
                _handler.remove()


def _plain_stderr() -> TextIO | None:
    stderr = cast("TextIO | Layer | None", sys.stderr)
    return stderr.original if isinstance(stderr, Layer) else stderr
