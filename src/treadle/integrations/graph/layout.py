"""Places a graph in layers from left to right (Sugiyama, Tagawa and Toda 1981).

The walk: each step one layer after the last of what it needs -> an edge that crosses layers holds a slot
in each of them -> order each layer by the mean place of the neighbours, so that few edges cross -> set
the height of each slot as near to its neighbours as the room allows -> columns as wide as their names.

All is linear in the slots. Slots of long edges are given to the shorter ones first, as long as there are
not many more of them than steps; an edge without slots is drawn in one curve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from treadle.integrations.graph.model import PlanGraph

BOX_HEIGHT: Final = 46.0
ROW_GAP: Final = 14.0
BEND_GAP: Final = 9.0
COLUMN_GAP: Final = 62.0
_SWEEPS: Final = 10
_SLOTS_A_STEP: Final = 3
_Links = list[list[int]]


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
    paths: Mapping[tuple[str, str], str]
    width: float
    height: float


def lay_out(graph: PlanGraph) -> Drawing:
    """The drawing of the graph, the same for the same graph."""
    layers = _layers(graph)
    ids = list(graph.order)
    number = {key: place for place, key in enumerate(ids)}
    slot_layers = [layers[key] for key in ids]
    routes = _routes(graph, layers, number, slot_layers)
    links = _links(routes.values(), len(slot_layers))
    rows = _rows(slot_layers)
    _order(rows, links)
    middles = _middles(rows, links, len(ids))
    return _drawing(graph, layers, number, routes, slot_layers, middles)


def _layers(graph: PlanGraph) -> dict[str, int]:
    layers: dict[str, int] = {}
    for key in graph.order:
        layers[key] = 1 + max((layers[dep] for dep in graph.needs[key]), default=-1)
    return layers


def _routes(
    graph: PlanGraph, layers: Mapping[str, int], number: Mapping[str, int], slot_layers: list[int]
) -> dict[tuple[str, str], list[int]]:
    """Each edge as the slots that it visits; new slots are added to `slot_layers`."""
    routes: dict[tuple[str, str], list[int]] = {}
    budget = _SLOTS_A_STEP * len(number) + 100
    for edge in sorted(graph.edges, key=lambda edge: (layers[edge[1]] - layers[edge[0]], edge)):
        between = range(layers[edge[0]] + 1, layers[edge[1]])
        if len(between) > budget:
            between = range(0)
        budget -= len(between)
        bends = range(len(slot_layers), len(slot_layers) + len(between))
        slot_layers.extend(between)
        routes[edge] = [number[edge[0]], *bends, number[edge[1]]]
    return routes


def _links(routes: Iterable[Sequence[int]], count: int) -> tuple[_Links, _Links]:
    """For each slot its neighbours to the left, and to the right."""
    left: _Links = [[] for _ in range(count)]
    right: _Links = [[] for _ in range(count)]
    for route in routes:
        for here, there in pairwise(route):
            right[here].append(there)
            left[there].append(here)
    return left, right


def _rows(slot_layers: Sequence[int]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(1 + max(slot_layers, default=-1))]
    for slot, layer in enumerate(slot_layers):
        rows[layer].append(slot)
    return rows


def _order(rows: list[list[int]], links: tuple[_Links, _Links]) -> None:
    """Sort each layer by the mean place of the neighbours, in sweeps to the right and back."""
    place = [0.0] * len(links[0])
    for row in rows:
        _number(row, place)
    for sweep in range(_SWEEPS):
        near = links[sweep % 2]
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wish = {slot: _mean(near[slot], place, place[slot]) for slot in row}
            row.sort(key=wish.__getitem__)
            _number(row, place)


def _number(row: Sequence[int], place: list[float]) -> None:
    for i, slot in enumerate(row):
        place[slot] = (i + 0.5) / len(row)


def _mean(slots: Sequence[int], values: Sequence[float], default: float) -> float:
    return sum([values[slot] for slot in slots]) / len(slots) if slots else default


def _middles(rows: Sequence[Sequence[int]], links: tuple[_Links, _Links], steps: int) -> list[float]:
    """The y of each slot's middle; slots below `steps` are boxes, the others bends of edges."""
    middle = [0.0] * len(links[0])
    heights = [[BOX_HEIGHT + ROW_GAP if slot < steps else BEND_GAP for slot in row] for row in rows]
    for row, sizes in zip(rows, heights, strict=True):
        for slot, y in zip(row, _apart([0.0] * len(row), sizes), strict=True):
            middle[slot] = y
    order = list(range(len(rows)))
    for sweep in range(_SWEEPS + 1):
        near = links[sweep % 2]
        for layer in order if sweep % 2 == 0 else reversed(order):
            row = rows[layer]
            wish = [_mean(near[slot], middle, middle[slot]) for slot in row]
            for slot, y in zip(row, _apart(wish, heights[layer]), strict=True):
                middle[slot] = y
    return middle


def _apart(wish: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """The middles nearest to `wish` (least squares), in that order, where no two sizes overlap.

    Isotonic regression by pooling adjacent violators (Ayer and others 1955).
    """
    offsets = list(accumulate(((a + b) / 2 for a, b in pairwise(sizes)), initial=0.0))
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wish, offsets, strict=False):
        mean, count = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    level = [mean for mean, count in pools for _ in range(count)]
    return [y + offset for y, offset in zip(level, offsets, strict=False)]


def _drawing(
    graph: PlanGraph,
    layers: Mapping[str, int],
    number: Mapping[str, int],
    routes: Mapping[tuple[str, str], Sequence[int]],
    slot_layers: Sequence[int],
    middles: Sequence[float],
) -> Drawing:
    widths = _widths(graph, layers)
    lefts = list(accumulate((width + COLUMN_GAP for width in widths), initial=0.0))
    top = min((middles[place] for place in number.values()), default=0.0) - BOX_HEIGHT / 2
    top = min(top, min(middles, default=0.0))
    ys = [middle - top for middle in middles]
    boxes = {
        key: Box(lefts[layers[key]], ys[place] - BOX_HEIGHT / 2, widths[layers[key]], layers[key])
        for key, place in number.items()
    }
    columns = [(left, left + width) for left, width in zip(lefts, widths, strict=False)]
    paths = {edge: _path(routes[edge], slot_layers, columns, ys) for edge in graph.edges}
    bottom = max((box.y + BOX_HEIGHT for box in boxes.values()), default=0.0)
    return Drawing(boxes, paths, max(lefts[-1] - COLUMN_GAP, 0.0), max(bottom, max(ys, default=0.0)))


def _widths(graph: PlanGraph, layers: Mapping[str, int]) -> list[float]:
    """A column is as wide as its texts need, at 7.4 pixels a letter; long names are cut."""
    widths = [0.0] * (1 + max(layers.values(), default=-1))
    for node in graph.nodes:
        name = min(max(176.0, 34 + 7.4 * len(node.name)), 248.0)
        below = 44 + 6.4 * len(node.short_id) + 6.2 * len(node.told)
        widths[layers[node.id]] = max(widths[layers[node.id]], name, below)
    return widths


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
