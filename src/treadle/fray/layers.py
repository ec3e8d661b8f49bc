"""Brings what code prints to whoever listens to it; see `capture`.

A layer over `sys.stdout` and `sys.stderr` asks who listens. What is written where nobody listens passes
through untouched. What child processes write is not heard: they write to the file descriptors.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, TextIO, TypeAlias, cast

from treadle.fray.capture import Listener, Stream, listening

_installing = threading.Lock()
_captures = 0


def _renew_lock() -> None:
    global _installing
    _installing = threading.Lock()


# A thread that holds the lock at a fork is not there in the child, which would wait for ever.
os.register_at_fork(after_in_child=_renew_lock)


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
