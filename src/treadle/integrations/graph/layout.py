"""The places of a drawing from left to right: columns as wide as their texts, edges as smooth curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from treadle.integrations.graph.layers import Edge, Layers, in_layers
from treadle.integrations.graph.model import PlanGraph

BOX_HEIGHT: Final = 46.0
ROW_GAP: Final = 14.0
BEND_GAP: Final = 9.0
COLUMN_GAP: Final = 62.0


@dataclass(frozen=True)
class Box:
    """A step's place: `x` and `y` of its left upper corner, in pixels; `layer` counts from 0."""

    x: float
    y: float
    width: float
    layer: int


@dataclass(frozen=True)
class Drawing:
    """Boxes by id; for each edge the SVG path data; all within (0, 0) and (width, height)."""

    boxes: Mapping[str, Box]
    paths: Mapping[Edge, str]
    width: float
    height: float


def lay_out(graph: PlanGraph) -> Drawing:
    """The drawing of the graph, the same for the same graph."""
    layers = in_layers(graph.order, graph.needs)
    columns = _columns(graph, layers)
    ys = _ys(layers)
    boxes = {key: _box(ys[slot], layers.layer_of[slot], columns) for key, slot in layers.slot_of.items()}
    paths = {edge: _path(layers.routes[edge], layers.layer_of, columns, ys) for edge in graph.edges}
    bottom = max((box.y + BOX_HEIGHT for box in boxes.values()), default=0.0)
    return Drawing(boxes, paths, columns[-1][1] if columns else 0.0, max(bottom, max(ys, default=0.0)))


def _ys(layers: Layers) -> list[float]:
    """The y of the middle of each slot; the topmost box or bend touches 0."""
    middles = layers.middles(BOX_HEIGHT + ROW_GAP, BEND_GAP)
    tops = [y if layers.is_bend(slot) else y - BOX_HEIGHT / 2 for slot, y in enumerate(middles)]
    top = min(tops, default=0.0)
    return [y - top for y in middles]


def _columns(graph: PlanGraph, layers: Layers) -> list[tuple[float, float]]:
    """The left and the right of each column."""
    widths = _widths(graph, layers)
    lefts = accumulate((width + COLUMN_GAP for width in widths), initial=0.0)
    return [(left, left + width) for left, width in zip(lefts, widths, strict=False)]


def _widths(graph: PlanGraph, layers: Layers) -> list[float]:
    """A column is as wide as its texts need, at 7.4 pixels a letter; long names are cut."""
    widths = [0.0] * len(layers.rows)
    for node in graph.nodes:
        layer = layers.layer_of[layers.slot_of[node.id]]
        name = min(max(176.0, 34 + 7.4 * len(node.name)), 248.0)
        below = 44 + 6.4 * len(node.second_line) + 6.2 * len(node.told)
        widths[layer] = max(widths[layer], name, below)
    return widths


def _box(y: float, layer: int, columns: Sequence[tuple[float, float]]) -> Box:
    left, right = columns[layer]
    return Box(left, y - BOX_HEIGHT / 2, right - left, layer)


def _path(
    route: Sequence[int],
    layers: Sequence[int],
    columns: Sequence[tuple[float, float]],
    ys: Sequence[float],
) -> str:
    """From the right side of a box to the left side of another, level across the columns in between."""
    x, y = columns[layers[route[0]]][1], ys[route[0]]
    path = [f"M{x:.1f} {y:.1f}"]
    for place, slot in enumerate(route[1:], start=2):
        left, right = columns[layers[slot]]
        middle = (x + left) / 2
        path.append(f"C{middle:.1f} {y:.1f} {middle:.1f} {ys[slot]:.1f} {left:.1f} {ys[slot]:.1f}")
        if place < len(route):
            path.append(f"H{right:.1f}")
        x, y = right, ys[slot]
    return "".join(path)
