"""Put a graph in order, or hand out its nodes as they become ready.

`arrange` is for a graph whose every node is visited once, in one go. `Frontier` is for a graph
that is worked off: nodes are taken, finish or fail in any order, and what a failure makes
unreachable is named together with its culprits.

Both check first: `graphlib` takes an unknown dependency silently as a new node.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Generic, Protocol, TypeVar

from treadle.errors import GraphError


class Key(Hashable, Protocol):
    """What names a node: it can be hashed and sorted."""

    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Key)


def arrange(graph: Mapping[K, Collection[K]]) -> tuple[K, ...]:
    """All nodes of `graph` (node -> its dependencies), dependencies first.

    Layer by layer, each layer sorted, so that the order is the same for the same graph.

    Raises:
        GraphError: an unknown dependency, a node that depends on itself, or a cycle (as a path).
    """
    sorter = _checked(graph)
    order: list[K] = []
    while layer := sorted(sorter.get_ready()):
        order.extend(layer)
        sorter.done(*layer)
    return tuple(order)


class Frontier(Generic[K]):
    """The nodes of a graph (node -> its dependencies) that may be worked on now.

    Every node taken must be given back once, by `done` or by `lose`. Among ready nodes the one
    with the largest `priority` comes first; ties are sorted. Not safe for use by several threads.

    Raises:
        GraphError: as for `arrange`.
    """

    def __init__(self, graph: Mapping[K, Collection[K]], priority: Mapping[K, float] | None = None) -> None:
        self._graph = graph
        self._arranged = arrange(graph)
        # A heap of numbers: it compares faster than one of names.
        self._by_rank = (
            sorted(graph, key=lambda key: (-priority.get(key, 0.0), key)) if priority else sorted(graph)
        )
        self._rank = {key: rank for rank, key in enumerate(self._by_rank)}
        self._waiting = {key: len(graph[key]) for key in graph}
        self._dependents: dict[K, list[K]] = {key: [] for key in graph}
        for key, dependencies in graph.items():
            for dependency in dependencies:
                self._dependents[dependency].append(key)
        self._failed: dict[K, int] = {}
        self._running: set[K] = set()
        self._heap = [rank for rank, key in enumerate(self._by_rank) if not self._waiting[key]]

    def take(self) -> K | None:
        """The next ready node, which now runs; None when nothing is ready at this moment."""
        if not self._heap:
            return None
        key = self._by_rank[heapq.heappop(self._heap)]
        self._running.add(key)
        return key

    def done(self, key: K) -> None:
        """`key` is finished: its dependents come one step nearer."""
        self._give_back(key)
        for dependent in self._dependents[key]:
            self._waiting[dependent] -= 1
            if not self._waiting[dependent]:
                heapq.heappush(self._heap, self._rank[dependent])

    def lose(self, key: K) -> None:
        """`key` has failed: its dependents, near and far, never become ready; `culprits` has them."""
        self._give_back(key)
        self._failed[key] = len(self._failed)

    def culprits(self) -> dict[K, tuple[K, ...]]:
        """Each lost dependent -> the failed nodes because of which it is lost, in the order of failing."""
        lost: dict[K, tuple[K, ...]] = {}
        found: dict[K, tuple[K, ...]] = {key: (key,) for key in self._failed}
        for key in self._arranged:
            because = {found[dep] for dep in self._graph[key] if dep in found}
            if len(because) > 1:  # else it shares the tuple of what it needs, as along a chain
                because = {tuple(sorted(set().union(*because), key=self._failed.__getitem__))}
            if because:
                found[key] = lost[key] = because.pop()
        return lost

    def _give_back(self, key: K) -> None:
        if key not in self._running:
            raise GraphError(f"{key!r} is given back but not running: take it first, give it back once")
        self._running.remove(key)


def _checked(graph: Mapping[K, Collection[K]]) -> TopologicalSorter[K]:
    for key, dependencies in graph.items():
        for dependency in dependencies:
            if dependency == key:
                raise GraphError(f"{key!r} depends on itself")
            if dependency not in graph:
                raise GraphError(f"{key!r} depends on {dependency!r}, which is no node of the graph")
    sorter: TopologicalSorter[K] = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        raise GraphError(f"cycle: {_path(error.args[1])}") from None
    return sorter


def _path(cycle: Sequence[Any]) -> str:
    """A cycle as `a -> b -> a`, an arrow pointing from a node to what it needs, the smallest first."""
    needs = [str(each) for each in reversed(cycle[1:])]
    start = needs.index(min(needs))
    return " -> ".join([*needs[start:], *needs[:start], needs[start]])
