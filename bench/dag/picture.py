"""The growth curve as a small SVG, drawn by hand so that it needs nothing: microseconds a step by steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bench.dag.measures.measure import Row
from bench.places import ROOT

PICTURE = ROOT / "docs" / "images" / "growth.svg"
_WIDE, _HIGH, _LEFT, _TOP = 560, 260, 60, 20
_CURVES = {"cold": "#b5482a", "warm": "#2a6fb5", "plan, nothing done": "#6b8e23"}


def draw(rows: Sequence[Row], path: Path = PICTURE) -> Path | None:
    """Write the picture of these rows of the growth measure; None when there is nothing to draw."""
    steps = [float(row["steps"] or 0) for row in rows]
    curves = {
        name: [(at, float(y)) for at, row in zip(steps, rows, strict=True) if (y := row[name])]
        for name in _CURVES
    }
    highest = max((y for points in curves.values() for _, y in points), default=0.0)
    if len(steps) < 2 or not highest:
        return None
    low, high = math.log(steps[0]), math.log(steps[-1])
    top = _round_up(highest)

    def place(at: float, y: float) -> tuple[float, float]:
        return _LEFT + _WIDE * (math.log(at) - low) / (high - low), _TOP + _HIGH * (1 - y / top)

    parts = [_grid(place(steps[0], y)[1], y) for y in (top * part / 4 for part in range(5))]
    parts += [_text(place(at, 0)[0], _TOP + _HIGH + 18, f"{at / 1e3:g} k", "middle") for at in steps]
    for line, (name, points) in enumerate(curves.items()):
        where = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        parts.append(f'<polyline points="{where}" fill="none" stroke="{_CURVES[name]}" stroke-width="2"/>')
        parts.append(_text(_LEFT + _WIDE + 12, _TOP + 20 + 18 * line, name, "start", _CURVES[name]))
    parts.append(_text(_LEFT + _WIDE / 2, _TOP + _HIGH + 38, "steps", "middle"))
    parts.append(_text(_LEFT, 13, "µs a step", "start"))
    path.parent.mkdir(exist_ok=True)
    path.write_text(_svg(parts))
    return path


def _svg(parts: Sequence[str]) -> str:
    wide, high = _LEFT + _WIDE + 150, _TOP + _HIGH + 50
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" '
        f'font-size="12"><rect width="{wide}" height="{high}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _grid(y: float, value: float) -> str:
    line = f'<line x1="{_LEFT}" x2="{_LEFT + _WIDE}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
    return line + _text(_LEFT - 8, y + 4, f"{value:,.0f}", "end")


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 10 times a power of ten."""
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * each for each in (1, 2, 4, 10) if unit * each >= value)
