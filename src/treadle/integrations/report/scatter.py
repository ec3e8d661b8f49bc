"""The points of the map as its script reads them, in columns, to keep the page small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from treadle.integrations.report.data import Point
from treadle.integrations.report.words import excerpt

TEXT = 240
"""Characters of a passage that the map shows: the page holds thousands of passages."""

Place = tuple[float, float]
"""x and y in the unit square."""


def topic_places(points: Sequence[Point]) -> dict[int, Place]:
    """Where each topic lies: the median of its points."""
    members: dict[int, list[Place]] = {}
    for point, place in zip(points, _places(points), strict=True):
        members.setdefault(point.topic, []).append(place)
    return {topic: _middle(places) for topic, places in members.items()}


def point_columns(points: Sequence[Point], numbers: Mapping[int, int]) -> dict[str, object]:
    """One list per property, one entry per point; `numbers` maps topic ids to places in the page's list."""
    places = _places(points)
    speakers = sorted({point.speaker for point in points})
    number_of = {speaker: number for number, speaker in enumerate(speakers)}
    return {
        "x": [x for x, _ in places],
        "y": [y for _, y in places],
        "topic": [numbers[point.topic] for point in points],
        "year": [point.year for point in points],
        "speaker": [number_of[point.speaker] for point in points],
        "text": [excerpt(point.text, TEXT) for point in points],
        "speakers": speakers,
    }


def _places(points: Sequence[Point]) -> list[Place]:
    xs, ys = _unit([point.x for point in points]), _unit([point.y for point in points])
    return list(zip(xs, ys, strict=True))


def _unit(values: Sequence[float]) -> list[float]:
    """The values stretched to 0 .. 1, to four digits: a tenth of a pixel on a large screen."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return [round((value - low) / (high - low), 4) if high > low else 0.5 for value in values]


def _middle(places: Sequence[Place]) -> Place:
    return round(median(x for x, _ in places), 4), round(median(y for _, y in places), 4)
