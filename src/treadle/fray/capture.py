"""Who listens to what code prints: the job, or the step, that runs there.

A context variable says who does, which is inherited by threads that are started by `kernel.carry`. What is
printed comes by way of `layers`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Literal, Protocol, TextIO, TypeAlias

Stream: TypeAlias = Literal["stdout", "stderr"]
Kind: TypeAlias = Literal["stdout", "stderr", "log", "error"]
"""Where a piece of output comes from: a stream, the logging module, or an error that ended the work."""


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
