"""What a report shows, as frozen records that check themselves.

The records hold values only: no layout, no colours, no markup. `ReportData` refuses, before anything is
drawn, what would draw a wrong page: a point of an unknown topic, a series of the wrong length, a number
whose source is no step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from treadle.errors import ArgumentError, UnknownNameError

FIGURES = ("map", "topics", "names", "over_time", "growth")
"""The figures of the page; each may name, in `ReportData.sources`, the step its numbers come from."""


@dataclass(frozen=True)
class Fact:
    """One key figure. `value` is printed as it is; `source` is a step id, "" for a sum over all steps."""

    label: str
    value: str
    source: str = ""


@dataclass(frozen=True)
class Example:
    """A passage that stands for its topic."""

    text: str
    speaker: str
    year: int


@dataclass(frozen=True)
class Topic:
    """One topic. `share` is its part of all passages (0 to 1); `by_period` counts passages, one per
    period."""

    id: int
    name: str
    passages: int
    share: float
    terms: tuple[str, ...]
    examples: tuple[Example, ...]
    by_period: tuple[int, ...]


@dataclass(frozen=True)
class Point:
    """One passage on the map; `topic` is the id of its topic. x and y are stretched to fill the map."""

    x: float
    y: float
    topic: int
    year: int
    speaker: str
    text: str


@dataclass(frozen=True)
class GrowthPoint:
    """Cumulative counts after `label` (a year): running words, different words, words seen exactly once."""

    label: str
    tokens: int
    types: int
    hapax: int


@dataclass(frozen=True)
class StepRow:
    """One step of the experiment. `seconds` is what its body took when it ran, also for a step that is
    cached.

    `finished` is printed as it is.
    """

    id: str
    name: str
    outcome: Literal["ran", "cached", "failed", "skipped"]
    seconds: float
    deps: tuple[str, ...]
    output_path: str
    fingerprint: str
    build: str
    finished: str


@dataclass(frozen=True)
class ReportData:
    """All that the page shows.

    `heaps` is (k, beta) of types = k * tokens ** beta. `sources` maps names out of `FIGURES` to step ids.
    `made` says by what and when. Raises ArgumentError and UnknownNameError for records that contradict each
    other.
    """

    title: str
    lead: str
    facts: tuple[Fact, ...]
    topics: tuple[Topic, ...]
    periods: tuple[str, ...]
    period_totals: tuple[int, ...]
    points: tuple[Point, ...]
    growth: tuple[GrowthPoint, ...]
    heaps: tuple[float, float]
    steps: tuple[StepRow, ...]
    corpus_note: str
    made: str
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_periods(self)
        _check_heaps(self)
        _check_points(self)
        _check_sources(self)


def _check_periods(data: ReportData) -> None:
    series = {"period_totals": data.period_totals} | {
        f"topic {each.name!r}": each.by_period for each in data.topics
    }
    for name, counts in series.items():
        if len(counts) != len(data.periods):
            raise ArgumentError(
                f"{name}: expected {len(data.periods)} counts, one per period, got {len(counts)}"
            )


def _check_heaps(data: ReportData) -> None:
    if not all(map(math.isfinite, data.heaps)):
        raise ArgumentError(f"heaps: expected finite k and beta, got {data.heaps}")


def _check_points(data: ReportData) -> None:
    ids = [topic.id for topic in data.topics]
    _check_different("topics", ids)
    for row, point in enumerate(data.points):
        if point.topic not in ids:
            raise UnknownNameError(f"topic of point {row}", point.topic, ids)
        if not (math.isfinite(point.x) and math.isfinite(point.y)):
            raise ArgumentError(f"points: row {row}: expected finite x and y, got {point.x}, {point.y}")


def _check_sources(data: ReportData) -> None:
    steps = [step.id for step in data.steps]
    _check_different("steps", steps)
    for figure, step in data.sources.items():
        if figure not in FIGURES:
            raise UnknownNameError("figure in sources", figure, FIGURES)
        if step not in steps:
            raise UnknownNameError(f"step as source of {figure!r}", step, steps)
    for fact in data.facts:
        if fact.source and fact.source not in steps:
            raise UnknownNameError(f"step as source of {fact.label!r}", fact.source, steps)


def _check_different(what: str, ids: Sequence[object]) -> None:
    if len(set(ids)) != len(ids):
        raise ArgumentError(f"{what}: expected different ids, got {ids}")
