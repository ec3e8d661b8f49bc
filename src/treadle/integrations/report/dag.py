"""Draws a graph of steps in layers, top down, as boxes and curves (Sugiyama, Tagawa and Toda 1981).

The walk: put each step below everything it needs -> let an edge that crosses layers hold a slot in each of
them -> order the slots of a layer by the mean place of their neighbours, so that few edges cross -> set x
as near to the neighbours as the room between boxes allows (isotonic regression, so no two boxes can
overlap) -> draw.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from treadle.integrations.report.spread import spread
from treadle.kernel.order import arrange

SWEEPS = 16

Graph = Mapping[str, Collection[str]]


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


@dataclass(frozen=True, order=True)
class Slot:
    """A place in a layer: of the step `name`, or of the edge from `name` to `target` on its way."""

    layer: int
    name: str
    target: str = ""


Route = tuple[Slot, ...]
Links = Mapping[Slot, Sequence[Slot]]


def draw_graph(graph: Graph, sizes: Sizes | None = None) -> Drawing:
    """The drawing of `graph`: step -> the steps it needs.

    Raises:
        GraphError: an unknown step, or a cycle.
    """
    sizes = sizes or Sizes()
    layers = _layers(graph)
    routes = _routes(graph, layers)
    above, below = _links(routes)
    rows = _ordered(_rows(layers, routes), above, below)
    return _drawn(routes, _centres(rows, above, below, sizes), sizes)


def _layers(graph: Graph) -> dict[str, int]:
    layers: dict[str, int] = {}
    for step in arrange(graph):
        layers[step] = 1 + max((layers[dep] for dep in graph[step]), default=-1)
    return layers


def _routes(graph: Graph, layers: Mapping[str, int]) -> list[Route]:
    """Each edge as the slots it visits, one in each layer."""
    routes = []
    for step in sorted(graph):
        for dep in sorted(set(graph[step])):
            bends = (Slot(layer, dep, step) for layer in range(layers[dep] + 1, layers[step]))
            routes.append((Slot(layers[dep], dep), *bends, Slot(layers[step], step)))
    return routes


def _links(routes: Sequence[Route]) -> tuple[Links, Links]:
    """For each slot its neighbours in the layer above, and in the layer below."""
    above: dict[Slot, list[Slot]] = {}
    below: dict[Slot, list[Slot]] = {}
    for route in routes:
        for upper, lower in pairwise(route):
            below.setdefault(upper, []).append(lower)
            above.setdefault(lower, []).append(upper)
    return above, below


def _rows(layers: Mapping[str, int], routes: Sequence[Route]) -> list[list[Slot]]:
    steps = {Slot(layer, step) for step, layer in layers.items()}
    rows: list[list[Slot]] = [[] for _ in range(1 + max(layers.values(), default=-1))]
    for slot in sorted(steps.union(*routes)):
        rows[slot.layer].append(slot)
    return rows


def _ordered(rows: list[list[Slot]], above: Links, below: Links) -> list[list[Slot]]:
    """The rows after sweeps down and up, each sorting by the mean place of the neighbours just passed."""
    place = {slot: (i + 0.5) / len(row) for row in rows for i, slot in enumerate(row)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for layer in range(len(rows)) if down else reversed(range(len(rows))):
            wish = {slot: fmean(place[each] for each in near.get(slot, [slot])) for slot in rows[layer]}
            rows[layer].sort(key=wish.__getitem__)
            place |= {slot: (i + 0.5) / len(rows[layer]) for i, slot in enumerate(rows[layer])}
    return rows


def _centres(rows: Sequence[Sequence[Slot]], above: Links, below: Links, sizes: Sizes) -> dict[Slot, float]:
    """The x of each slot's middle."""
    centre = {slot: 0.0 for row in rows for slot in row}
    for sweep in range(SWEEPS):
        near = (above, below)[sweep % 2]
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wish = [fmean(centre[each] for each in near.get(slot, [slot])) for slot in row]
            placed = spread(wish, [_width(slot, sizes) for slot in row], sizes.gap)
            centre |= dict(zip(row, placed, strict=True))
    return centre


def _width(slot: Slot, sizes: Sizes) -> float:
    return sizes.bend if slot.target else sizes.box_width


def _drawn(routes: Sequence[Route], centre: Mapping[Slot, float], sizes: Sizes) -> Drawing:
    left = min((x - _width(slot, sizes) / 2 for slot, x in centre.items()), default=0.0)
    right = max((x + _width(slot, sizes) / 2 for slot, x in centre.items()), default=0.0)
    pitch = sizes.box_height + sizes.layer_gap
    spots = {slot: (x - left, slot.layer * pitch) for slot, x in sorted(centre.items())}
    boxes = tuple(
        Box(slot.name, x - sizes.box_width / 2, y, sizes.box_width, sizes.box_height)
        for slot, (x, y) in spots.items()
        if not slot.target
    )
    edges = tuple(
        Edge(route[0].name, route[-1].name, _curve(route, spots, sizes.box_height)) for route in routes
    )
    return Drawing(boxes, edges, right - left, max((box.y + box.height for box in boxes), default=0.0))


def _curve(route: Route, spots: Mapping[Slot, tuple[float, float]], height: float) -> str:
    """From the foot of one box to the head of another, straight through the layers in between."""
    x, y = spots[route[0]]
    path = [f"M{x:.1f} {y + height:.1f}"]
    for upper, lower in pairwise(route):
        (x0, y0), (x1, y1) = spots[upper], spots[lower]
        middle = (y0 + height + y1) / 2
        path.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
        if lower.target:
            path.append(f"V{y1 + height:.1f}")
    return "".join(path)
