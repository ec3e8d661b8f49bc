"""When a stage worked, in bounded memory: neighbouring spans are joined when there are too many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from treadle.errors import ArgumentError

SPANS_KEPT = 128
"""So many spans are kept for each stage of a unit, at most."""


@dataclass(frozen=True)
class StageSpan:
    """A stretch of time in which a stage worked; seconds since the unit began.

    `busy` are the seconds in which it really did: less than the length where several were joined.
    """

    stage: str
    start: float
    end: float
    busy: float


class SpanLine:
    """The spans of one stage of one unit, in the order in which they ended."""

    def __init__(self, kept: int = SPANS_KEPT) -> None:
        if kept < 2:
            raise ArgumentError(f"kept: expected at least 2 spans, got {kept}")
        self._kept = kept
        self._every = 1  # how many pieces of work make a span; doubled when there are too many spans
        self._in_last = 0
        self._spans: list[tuple[float, float, float]] = []

    def add(self, start: float, end: float) -> None:
        """Note one piece of work."""
        piece = (start, end, end - start)
        if self._spans and self._in_last < self._every:
            self._spans[-1] = _joined(self._spans[-1], piece)
            self._in_last += 1
            return
        if len(self._spans) == self._kept:
            self._halve()
        self._spans.append(piece)
        self._in_last = 1

    def spans(self, stage: str) -> Iterator[StageSpan]:
        """What is kept."""
        return (StageSpan(stage, *each) for each in self._spans)

    def _halve(self) -> None:
        pairs = zip(self._spans[::2], [*self._spans[1::2], None], strict=False)
        self._spans = [one if two is None else _joined(one, two) for one, two in pairs]
        self._every *= 2


_Span = tuple[float, float, float]


def _joined(one: _Span, two: _Span) -> _Span:
    return min(one[0], two[0]), max(one[1], two[1]), one[2] + two[2]
