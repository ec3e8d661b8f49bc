"""Brings what code prints to whoever listens to it: the job, or the step, that runs there.

A layer over `sys.stdout` and `sys.stderr` asks a context variable who listens. What is written where nobody
listens passes through untouched. Who listens is inherited by threads that are started by `kernel.carry`.
What child processes write is not heard: they write to the file descriptors.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, BinaryIO, Final, Literal, Protocol, TextIO, TypeAlias, cast

Stream: TypeAlias = Literal["stdout", "stderr"]
Kind: TypeAlias = Literal["stdout", "stderr", "log", "error"]
"""Where a piece of output comes from: a stream, the logging module, or an error that ended the work."""

_installing = threading.Lock()
_captures = 0


def _renew_lock() -> None:
    global _installing
    _installing = threading.Lock()


# A thread that holds the lock at a fork is not there in the child, which would wait for ever.
os.register_at_fork(after_in_child=_renew_lock)


class Listener(Protocol):
    """Hears what is written in its context, until it is closed."""

    @property
    def closed(self) -> bool:
        """Whether it hears no more; `outer` is asked then."""
        ...

    @property
    def outer(self) -> Listener | None:
        """Who heard what was written before, and would hear it without this one."""
        ...

    def write(self, kind: Kind, piece: str | bytes, sink: TextIO | None) -> None:
        """Take a piece of output. `sink` is where it would have gone without any listener."""
        ...

    def overhear(self, kind: Kind, piece: str) -> None:
        """Take note of output that an inner listener has sent to its sink by itself."""
        ...


LISTENER: ContextVar[Listener | None] = ContextVar("treadle listener", default=None)


def listening() -> Listener | None:
    """Who hears what is written here and now."""
    return open_listener(LISTENER.get())


def open_listener(listener: Listener | None) -> Listener | None:
    """The listener, or the nearest outer one that is not closed."""
    while listener is not None and listener.closed:
        listener = listener.outer
    return listener


def pass_on(outer: Listener | None, kind: Kind, piece: str | bytes, sink: TextIO | None) -> None:
    """Hand a piece of output to the next listener, or to the sink when there is none."""
    heard_by = open_listener(outer)
    if heard_by is not None:
        heard_by.write(kind, piece, sink)
    elif sink is not None:
        outside(sink, piece)


def outside(sink: TextIO, piece: str | bytes) -> None:
    """Write with nobody listening: the sink may lead, by way of a progress display, to a layer of ours."""
    token = LISTENER.set(None)
    try:
        if isinstance(piece, str):
            sink.write(piece)
        else:
            sink.buffer.write(piece)
    finally:
        LISTENER.reset(token)


class Layer:
    """What stands for `sys.stdout` or `sys.stderr` in a capture; everything but writing is the original's."""

    def __init__(self, kind: Stream, original: TextIO) -> None:
        self.kind: Final = kind
        self.original: Final = original
        self.users = 0

    def write(self, text: str) -> int:
        """To whoever listens, else to the original."""
        listener = self.listener()
        if listener is None:
            return self.original.write(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        listener.write(self.kind, text, self.original)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each; none gets a line end that it has not."""
        for line in lines:
            self.write(line)

    def listener(self) -> Listener | None:
        """Who hears what is written here and now.

        Also when nobody uses this layer: a handler of logging may have kept it from an earlier capture.
        """
        return listening() if _captures else None

    @property
    def buffer(self) -> BinaryLayer:
        """The binary face; AttributeError when the original has none."""
        return BinaryLayer(self, self.original.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class BinaryLayer:
    """The `buffer` of a layer: its bytes go to whoever listens."""

    def __init__(self, layer: Layer, original: BinaryIO) -> None:
        self._layer = layer
        self._original = original

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """To whoever listens, else to the original."""
        listener = self._layer.listener()
        if listener is None:
            return self._original.write(data)
        listener.write(self._layer.kind, piece := bytes(data), self._layer.original)
        return len(piece)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


Layers: TypeAlias = tuple[Layer | None, Layer | None]
"""Those over stdout and stderr. A stream is None where its file descriptor was closed before Python began."""


def layer_streams() -> Layers:
    """Put a layer over each stream, or use the one that is there; `peel_streams` takes what this gives."""
    global _captures
    out: TextIO | Layer | None
    err: TextIO | Layer | None
    with _installing:  # twice written out, here and below: this is done for each job
        if (out := sys.stdout) is not None:
            if type(out) is not Layer or not out.users:
                out = sys.stdout = _layer_over("stdout", out)
            out.users += 1
        if (err := sys.stderr) is not None:
            if type(err) is not Layer or not err.users:
                err = sys.stderr = _layer_over("stderr", err)
            err.users += 1
        _captures += 1
    return out, err


def peel_streams(layers: Layers) -> None:
    """Stop using the layers. The last one out puts the streams back.

    If somebody else has replaced a stream meanwhile, theirs stays, and the layer below it only passes on.
    """
    global _captures
    out, err = layers
    with _installing:
        _captures -= 1
        if out is not None:
            out.users -= 1
            if not out.users and sys.stdout is out:
                sys.stdout = out.original
        if err is not None:
            err.users -= 1
            if not err.users and sys.stderr is err:
                sys.stderr = err.original


@contextmanager
def layered_streams() -> Iterator[None]:
    """Hear what is written for the length of the block. Blocks may nest and overlap."""
    layers = layer_streams()
    try:
        yield
    finally:
        peel_streams(layers)


def _layer_over(kind: Stream, stream: TextIO | Layer) -> Layer:
    while type(stream) is Layer and not stream.users:  # one that a stranger has put back
        stream = stream.original
    return stream if type(stream) is Layer else Layer(kind, cast("TextIO", stream))
