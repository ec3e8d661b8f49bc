"""Colours that tell neighbours on the map apart, for colour-blind readers too.

Twenty topics cannot have twenty colours that everybody can tell apart; ten colours are shared, evenly, so
that topics near each other on the map differ as much as possible, in the weakest of three ways to see: full
colour vision, red-blind and green-blind (Machado, Oliveira and Fernandes 2009, severity 1). Distances are
those of OKLab (Ottosson 2020).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

LIGHT = (
    "#2253c3", "#761c00", "#3ea483", "#5d104b", "#c38819",
    "#4a2189", "#4898dc", "#86375b", "#616e14", "#9a5a90",
)  # fmt: skip
DARK = (
    "#296ddd", "#c64814", "#3bfed0", "#ab4f6e", "#bc9532",
    "#b8baf6", "#4d98f0", "#f791a2", "#98eb65", "#b874ab",
)  # fmt: skip
"""The same ten hues for a light and for a dark page, found by a search for the largest least difference
among colours with a contrast of 3:1 or more against the page (WCAG 1.4.11)."""

NEAR = 0.15
"""Topics closer than this, in the unit square, are neighbours."""

Vector = tuple[float, float, float]
_VISIONS: tuple[tuple[Vector, Vector, Vector], ...] = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
)


_CONES: tuple[Vector, Vector, Vector] = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_LAB: tuple[Vector, Vector, Vector] = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def assign_colours(places: Mapping[int, tuple[float, float]]) -> dict[int, int]:
    """Topic -> index into `LIGHT` and `DARK`, given where each topic lies in the unit square.

    Earlier topics choose first. Each takes, among the colours used least so far, the one least like those
    near it.
    """
    chosen: dict[int, int] = {}
    for topic, place in places.items():
        near = {other: 1 / (NEAR**2 + _gap(place, places[other])) for other in chosen}
        costs = [
            (
                list(chosen.values()).count(colour),
                sum(_likeness(colour, chosen[other]) * weight for other, weight in near.items()),
                colour,
            )
            for colour in range(len(LIGHT))
        ]
        chosen[topic] = min(costs)[2]
    return chosen


def _gap(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Squared, so that neighbours count and the far side of the map does not."""
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


@cache
def _likeness(a: int, b: int) -> float:
    return math.exp(-12 * min(difference(palette[a], palette[b]) for palette in (LIGHT, DARK)))


def difference(a: str, b: str) -> float:
    """How far apart two colours (#rrggbb) look, in the weakest of the three visions; 0 is the same."""
    pairs = ((_seen(_linear(a), vision), _seen(_linear(b), vision)) for vision in _VISIONS)
    return min(math.dist(_oklab(x), _oklab(y)) for x, y in pairs)


def contrast(a: str, b: str) -> float:
    """The contrast ratio of WCAG 2, from 1 to 21."""
    dark, light = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(_linear, (a, b)))
    return (light + 0.05) / (dark + 0.05)


def _linear(colour: str) -> Vector:
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return _curve(r), _curve(g), _curve(b)


def _curve(x: float) -> float:
    return x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4


def _seen(colour: Vector, vision: Sequence[Vector]) -> Vector:
    r, g, b = (min(max(_dot(row, colour), 0.0), 1.0) for row in vision)
    return r, g, b


def _oklab(colour: Vector) -> Vector:
    roots = [math.cbrt(_dot(row, colour)) for row in _CONES]
    lightness, green_red, blue_yellow = (_dot(row, roots) for row in _LAB)
    return lightness, green_red, blue_yellow


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
