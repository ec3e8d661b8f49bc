"""Brings what the bodies of steps print and log to their step logs, for as long as a run lasts.

A layer over `sys.stdout` and `sys.stderr` and a handler on the root logger ask whose body is running
(see `step_log.py`). What is written outside of a body passes through untouched.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Literal, TextIO, TypeAlias, cast

from treadle.execution.running.step_log import StepLog, listening

Stream: TypeAlias = Literal["stdout", "stderr"]
_STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")
_installing = threading.Lock()


class Layer:
    """What stands for `sys.stdout` or `sys.stderr` in a capture; everything but writing is the original's."""

    def __init__(self, kind: Stream, original: TextIO) -> None:
        self.kind: Final = kind
        self.original: Final = original
        self.users = 0

    def write(self, text: str) -> int:
        """To the log of the body that runs, else to the original."""
        body = self.listener()
        if body is None:
            return self.original.write(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        body.write(self.kind, text, self.original)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each; none gets a line end that it has not."""
        for line in lines:
            self.write(line)

    def listener(self) -> StepLog | None:
        """The log that hears what is written here and now."""
        return listening() if self.users else None

    @property
    def buffer(self) -> BinaryLayer:
        """The binary face; AttributeError when the original has none."""
        return BinaryLayer(self, self.original.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class BinaryLayer:
    """The `buffer` of a layer: the bytes of a body go to its log."""

    def __init__(self, layer: Layer, original: BinaryIO) -> None:
        self._layer = layer
        self._original = original

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """To the log of the body that runs, else to the original."""
        body = self._layer.listener()
        if body is None:
            return self._original.write(data)
        body.write(self._layer.kind, piece := bytes(data), self._layer.original)
        return len(piece)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


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
        body, others = listening(), self._others(record)
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
    with _installing:
        # A stream is None where its file descriptor was closed before Python began.
        layers = [_layered(kind) for kind in _STREAMS if getattr(sys, kind) is not None]
        if not _handler.users:
            _handler.install()
        _handler.users += 1
    try:
        yield
    finally:
        with _installing:
            for layer in layers:
                _leave(layer)
            _handler.users -= 1
            if not _handler.users:
                _handler.remove()


def _layered(kind: Stream) -> Layer:
    current = cast("TextIO | Layer", getattr(sys, kind))
    while isinstance(current, Layer) and not current.users:  # one that a stranger has put back
        current = current.original
    layer = current if isinstance(current, Layer) else Layer(kind, current)
    layer.users += 1
    setattr(sys, kind, layer)
    return layer


def _leave(layer: Layer) -> None:
    layer.users -= 1
    if not layer.users and getattr(sys, layer.kind) is layer:
        setattr(sys, layer.kind, layer.original)


def _plain_stderr() -> TextIO | None:
    stderr = cast("TextIO | Layer | None", sys.stderr)
    return stderr.original if isinstance(stderr, Layer) else stderr
