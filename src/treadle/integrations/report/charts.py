"""Geometry of the small charts, in a square of 100 by 100 whose y points down.

The page stretches the square to the width at hand and sets the words beside it in HTML, so that text is as
large on a phone as on a desk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from treadle.integrations.graph.spread import spread
from treadle.integrations.report.data import GrowthPoint
from treadle.integrations.report.words import short_count

CURVE_POINTS = 64

LABEL_ROOM = 8.0
"""Height, in percent of the chart, that the name of a curve needs."""


@dataclass(frozen=True)
class Tick:
    """A mark on an axis; `at` is in percent of its length."""

    at: float
    label: str


@dataclass(frozen=True)
class Line:
    """A curve: SVG path data, and where its name stands beside its end (percent from the top)."""

    name: str
    path: str
    label: float


@dataclass(frozen=True)
class GrowthChart:
    """Words read against different words met."""

    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def area_path(values: Sequence[float], top: float) -> str:
    """A filled hill over `values`, evenly spaced; the value `top` reaches the upper edge."""
    line = line_path(_even(values, top))
    return f"{line}L100 100L0 100Z" if line else ""


def crest_path(values: Sequence[float], top: float) -> str:
    """The upper line of `area_path`."""
    return line_path(_even(values, top))


def _even(values: Sequence[float], top: float) -> list[tuple[float, float]]:
    if len(values) == 1:
        values = [*values, *values]
    return [(100 * i / (len(values) - 1), 100 - 100 * value / (top or 1)) for i, value in enumerate(values)]


def line_path(points: Sequence[tuple[float, float]]) -> str:
    """A smooth line through `points` that never overshoots them (Fritsch and Butland 1984)."""
    if not points:
        return ""
    slopes = _slopes(points)
    path = [f"M{points[0][0]:.2f} {points[0][1]:.2f}"]
    for ((x0, y0), m0), ((x1, y1), m1) in pairwise(zip(points, slopes, strict=True)):
        third = (x1 - x0) / 3
        controls = f"{x0 + third:.2f} {y0 + m0 * third:.2f} {x1 - third:.2f} {y1 - m1 * third:.2f}"
        path.append(f"C{controls} {x1:.2f} {y1:.2f}")
    return "".join(path)


def _slopes(points: Sequence[tuple[float, float]]) -> list[float]:
    chords = [(y1 - y0) / (x1 - x0) if x1 > x0 else 0.0 for (x0, y0), (x1, y1) in pairwise(points)]
    inner = [0.0 if a * b <= 0 else 2 * a * b / (a + b) for a, b in pairwise(chords)]
    return [*chords[:1], *inner, *chords[-1:]] if chords else [0.0]


def growth_chart(growth: Sequence[GrowthPoint], heaps: tuple[float, float]) -> GrowthChart:
    """Types and hapax over tokens, with the fit of Heaps' law, on linear axes from zero."""
    last = max([1, *(point.tokens for point in growth)])
    k, beta = heaps
    steps = [last * i / CURVE_POINTS for i in range(CURVE_POINTS + 1)] if growth else []
    curves = {
        "different words": [(float(point.tokens), float(point.types)) for point in growth],
        "Heaps' law": [(x, k * x**beta) for x in steps],
        "words used once": [(float(point.tokens), float(point.hapax)) for point in growth],
    }
    highest = max([1, *(y for curve in curves.values() for _, y in curve)])
    scaled = {
        name: [(100 * x / last, 100 - 100 * y / highest) for x, y in curve] for name, curve in curves.items()
    }
    return GrowthChart(_named(scaled), _ticks(last), _ticks(highest))


def _named(curves: Mapping[str, Sequence[tuple[float, float]]]) -> tuple[Line, ...]:
    """The curves from the highest end to the lowest, their names kept apart."""
    ranked = sorted((name for name, curve in curves.items() if curve), key=lambda name: curves[name][-1][1])
    labels = spread([curves[name][-1][1] for name in ranked], [LABEL_ROOM] * len(ranked), gap=0)
    return tuple(
        Line(name, line_path(curves[name]), label) for name, label in zip(ranked, labels, strict=True)
    )


def _ticks(highest: float) -> tuple[Tick, ...]:
    """Three to six round numbers from zero up to `highest`, which is the end of the axis."""
    rough = highest / 5
    magnitude = 10 ** math.floor(math.log10(rough))
    step = next(size * magnitude for size in (1, 2, 5, 10) if size * magnitude >= rough)
    return tuple(
        Tick(100 * step * i / highest, short_count(step * i)) for i in range(int(highest / step) + 1)
    )
