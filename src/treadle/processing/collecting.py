"""Fewer rounds of Python's collector of cycles while rows come and go.

The rows of a batch are thousands of small objects, all alive and none in a cycle. By its usual threshold of
700 objects the collector looks at them again and again, which takes as long as all other work with nested
rows.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

OBJECTS: Final = 20_000
"""The collector sets in when there are so many more objects than before: those of a few batches."""

_lock: Final = threading.Lock()
_inside = 0
_before = (0, 0, 0)


@contextmanager
def rare_collections() -> Iterator[None]:
    """A block under a higher threshold, which is that of the process; blocks of several threads may overlap.

    A collector that is switched off stays so, and a threshold that others set meanwhile stays theirs.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = gc.get_threshold()
            if 0 < _before[0] < OBJECTS:
                gc.set_threshold(OBJECTS, *_before[1:])
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0 and gc.get_threshold()[0] == OBJECTS:
            gc.set_threshold(*_before)
