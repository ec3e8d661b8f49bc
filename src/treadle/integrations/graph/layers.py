"""Puts a graph in layers so that few edges cross (Sugiyama, Tagawa and Toda 1981), whichever way they run.

The walk: each step one layer after the last of what it needs -> an edge that crosses layers holds a slot
in each of them -> order each layer by the mean place of the neighbours -> `middles` sets each slot as near
to its neighbours as the room allows.

All is linear in the slots. Slots of long edges are given to the shorter ones first, as long as there are
not many more of them than steps; an edge without slots is drawn in one curve.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

from treadle.integrations.graph.spread import spread

T = TypeVar("T")

_SWEEPS: Final = 10
_SLOTS_A_STEP: Final = 3

Edge: TypeAlias = tuple[str, str]
"""The id of a step that is needed, and of one that needs it."""
Links: TypeAlias = list[list[int]]


@dataclass(frozen=True)
class Layers:
    """A graph as slots in layers.

    Slots are numbered: first those of the steps, by id in `slot_of`, then the bends of long edges. `routes`
    has the slots that each edge visits, `layer_of` the layer of each slot, `rows` the slots of each layer in
    their order, `before` and `after` the neighbours of each slot.
    """

    slot_of: Mapping[str, int]
    routes: Mapping[Edge, Sequence[int]]
    layer_of: Sequence[int]
    rows: Sequence[Sequence[int]]
    before: Links
    after: Links

    def is_bend(self, slot: int) -> bool:
        """Whether it belongs to an edge on its way."""
        return slot >= len(self.slot_of)

    def middles(self, step: float, bend: float) -> list[float]:
        """Where the middle of each slot lies along its layer; a step takes so much room, and a bend."""
        middle = [0.0] * len(self.layer_of)
        rooms = [[bend if self.is_bend(slot) else step for slot in row] for row in self.rows]
        for row, room in zip(self.rows, rooms, strict=True):
            _put(middle, row, spread([0.0] * len(row), room))
        for sweep in range(_SWEEPS + 1):
            near = (self.before, self.after)[sweep % 2]
            for layer in _swept(range(len(self.rows)), sweep):
                row = self.rows[layer]
                wish = [_mean(near[slot], middle, middle[slot]) for slot in row]
                _put(middle, row, spread(wish, rooms[layer]))
        return middle


def in_layers(order: Sequence[str], needs: Mapping[str, Collection[str]]) -> Layers:
    """The steps in layers, the same for the same graph; `order` has them with dependencies first."""
    slot_of = {key: slot for slot, key in enumerate(order)}
    layer_of: list[int] = []
    for key in order:
        layer_of.append(1 + max((layer_of[slot_of[dep]] for dep in needs[key]), default=-1))
    routes = _routes({(dep, key) for key in order for dep in needs[key]}, slot_of, layer_of)
    before, after = _links(routes.values(), len(layer_of))
    return Layers(slot_of, routes, layer_of, _rows(layer_of, before, after), before, after)


def _routes(edges: Iterable[Edge], slot_of: Mapping[str, int], layer_of: list[int]) -> dict[Edge, list[int]]:
    """Each edge as the slots that it visits; those of its bends are added to `layer_of`."""
    routes: dict[Edge, list[int]] = {}
    budget = _SLOTS_A_STEP * len(slot_of) + 100
    ends = {edge: (slot_of[edge[0]], slot_of[edge[1]]) for edge in edges}
    for edge, (start, end) in sorted(ends.items(), key=lambda pair: (_length(pair[1], layer_of), pair[0])):
        between = range(layer_of[start] + 1, layer_of[end])
        if len(between) > budget:
            between = range(0)
        budget -= len(between)
        bends = range(len(layer_of), len(layer_of) + len(between))
        layer_of.extend(between)
        routes[edge] = [start, *bends, end]
    return routes


def _length(ends: tuple[int, int], layer_of: Sequence[int]) -> int:
    return layer_of[ends[1]] - layer_of[ends[0]]


def _links(routes: Iterable[Sequence[int]], count: int) -> tuple[Links, Links]:
    """The neighbours of each slot in the layer before, and in the layer after."""
    before: Links = [[] for _ in range(count)]
    after: Links = [[] for _ in range(count)]
    for route in routes:
        for here, there in pairwise(route):
            after[here].append(there)
            before[there].append(here)
    return before, after


def _rows(layer_of: Sequence[int], before: Links, after: Links) -> list[list[int]]:
    """The slots of each layer, sorted by the mean place of their neighbours in sweeps to and fro."""
    rows: list[list[int]] = [[] for _ in range(1 + max(layer_of, default=-1))]
    for slot, layer in enumerate(layer_of):
        rows[layer].append(slot)
    place = [0.0] * len(layer_of)
    for row in rows:
        _put(place, row, _evenly(len(row)))
    for sweep in range(_SWEEPS):
        near = (before, after)[sweep % 2]
        for row in _swept(rows, sweep):
            wish = {slot: _mean(near[slot], place, place[slot]) for slot in row}
            row.sort(key=wish.__getitem__)
            _put(place, row, _evenly(len(row)))
    return rows


def _swept(layers: Sequence[T], sweep: int) -> Iterable[T]:
    return layers if sweep % 2 == 0 else reversed(layers)


def _evenly(count: int) -> list[float]:
    return [(i + 0.5) / count for i in range(count)]


def _put(values: list[float], row: Sequence[int], new: Sequence[float]) -> None:
    for slot, value in zip(row, new, strict=True):
        values[slot] = value


def _mean(slots: Sequence[int], values: Sequence[float], default: float) -> float:
    return sum([values[slot] for slot in slots]) / len(slots) if slots else default
