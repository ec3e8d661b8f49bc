"""The numbers of the lines of a part of a file, which cost a look at all before it: only when asked for."""

from __future__ import annotations

import math
from bisect import bisect, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import overload

import fsspec

from treadle.storage.compression import open_stream

_BLOCK = 2**20
_FILES = 64
_KNOWN: dict[str, list[tuple[int, int]]] = {}
"""By version of a file: (byte, line breaks before it), sorted. So not every part is counted from the
beginning of the file."""
_LOCK = Lock()


@dataclass(frozen=True)
class Place:
    """The byte of a file without compression where a line begins; 0 for a file with it."""

    path: str
    byte: int

    @cached_property
    def number(self) -> int:
        """The number of that line, from 1. The file is read up to there."""
        return 1 + _breaks_before(self.path, self.byte) if self.byte else 1


@dataclass(frozen=True)
class LineNumbers(Sequence[int]):
    """Numbers of lines, given as steps from the first line of a part."""

    start: Place
    steps: Sequence[int]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[int]:
        return iter([self.start.number + step for step in self.steps])

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...

    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            return LineNumbers(self.start, self.steps[index])
        return self.start.number + self.steps[index]


def _breaks_before(path: str, byte: int) -> int:
    system, name = fsspec.core.url_to_fs(path)
    version = f"{path} {system.ukey(name)}"
    with _LOCK:
        known = _KNOWN.setdefault(version, [(0, 0)])
        first, count = known[bisect(known, (byte, math.inf)) - 1]
    count += _breaks_between(path, first, byte)
    with _LOCK:
        insort(known, (byte, count))
        while len(_KNOWN) > _FILES:
            del _KNOWN[next(iter(_KNOWN))]
    return count


def _breaks_between(path: str, first: int, end: int) -> int:
    count, left = 0, end - first
    with open_stream(path, first) as stream:
        while left and (block := stream.read(min(left, _BLOCK))):
            count += block.count(b"\n")
            left -= len(block)
    return count
