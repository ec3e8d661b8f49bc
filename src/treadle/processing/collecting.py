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


class _Blocks:
    """The blocks that are open in this process, and the threshold before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._before = gc.get_threshold()

    def enter(self) -> None:
        with self._lock:
            if self._open == 0:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < OBJECTS:
                    gc.set_threshold(OBJECTS, *self._before[1:])
            self._open += 1

    def leave(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0 and gc.get_threshold()[0] == OBJECTS:
                gc.set_threshold(*self._before)


_BLOCKS: Final = _Blocks()


@contextmanager
def rare_collections() -> Iterator[None]:
    """A block under a higher threshold, which is that of the process; blocks of several threads may overlap.

    A collector that is switched off stays so, and a threshold that others set meanwhile stays theirs.
    """
    _BLOCKS.enter()
    try:
        yield
    finally:
        _BLOCKS.leave()
