"""Draws a graph of steps top down, as boxes and curves; see `in_layers`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from treadle.integrations.graph.layers import Layers, in_layers
from treadle.kernel.order import arrange

Graph: TypeAlias = Mapping[str, Collection[str]]
Spot: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Sizes:
    """Sizes in CSS pixels; `bend` is the width that an edge keeps free where it crosses a layer."""

    box_width: float = 168
    box_height: float = 50
    gap: float = 22
    layer_gap: float = 36
    bend: float = 4


@dataclass(frozen=True)
class Box:
    """One step; x and y are its left upper corner."""

    id: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Edge:
    """One dependency, from the step that is needed to the one that needs it; `path` is SVG path data."""

    source: str
    target: str
    path: str


@dataclass(frozen=True)
class Drawing:
    """Boxes and edges within (0, 0) and (width, height)."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float


def draw_graph(graph: Graph, sizes: Sizes | None = None) -> Drawing:
    """The drawing of `graph`: step -> the steps it needs.

    Raises:
        GraphError: an unknown step, or a cycle.
    """
    sizes = sizes or Sizes()
    layers = in_layers(arrange(dict(sorted(graph.items()))), graph)
    spots, width = _spots(layers, sizes)
    boxes = tuple(
        Box(step, x - sizes.box_width / 2, y, sizes.box_width, sizes.box_height)
        for step, (x, y) in ((step, spots[slot]) for step, slot in layers.slot_of.items())
    )
    edges = tuple(
        Edge(*edge, _curve(route, layers, spots, sizes.box_height)) for edge, route in layers.routes.items()
    )
    return Drawing(boxes, edges, width, max((box.y + box.height for box in boxes), default=0.0))


def _spots(layers: Layers, sizes: Sizes) -> tuple[list[Spot], float]:
    """The middle of the upper side of each slot, and how wide all of them are."""
    middles = layers.middles(sizes.box_width + sizes.gap, sizes.bend + sizes.gap)
    halves = [(sizes.bend if layers.is_bend(slot) else sizes.box_width) / 2 for slot in range(len(middles))]
    left = min((x - half for x, half in zip(middles, halves, strict=True)), default=0.0)
    right = max((x + half for x, half in zip(middles, halves, strict=True)), default=0.0)
    pitch = sizes.box_height + sizes.layer_gap
    spots = [(x - left, layer * pitch) for x, layer in zip(middles, layers.layer_of, strict=True)]
    return spots, right - left


def _curve(route: Sequence[int], layers: Layers, spots: Sequence[Spot], height: float) -> str:
    """From the foot of one box to the head of another, straight through the layers in between."""
    x, y = spots[route[0]]
    path = [f"M{x:.1f} {y + height:.1f}"]
    for upper, lower in pairwise(route):
        (x0, y0), (x1, y1) = spots[upper], spots[lower]
        middle = (y0 + height + y1) / 2
        path.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
        if layers.is_bend(lower):
            path.append(f"V{y1 + height:.1f}")
    return "".join(path)
