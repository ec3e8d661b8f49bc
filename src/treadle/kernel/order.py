"""Put a graph in order, or hand out its nodes as they become ready.

`arrange` is for a graph that is there as a whole; `Frontier` for one that grows while its nodes finish
or fail, in any order. Both check first: `graphlib` takes an unknown dependency as a new node.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Container, Hashable, Mapping
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
    sorter = _checked(graph, ())
    order: list[K] = []
    while layer := sorted(sorter.get_ready()):
        order.extend(layer)
        sorter.done(*layer)
    return tuple(order)


class Frontier(Generic[K]):
    """The nodes of a growing graph that may be worked on now. It keeps nothing of one that is done.

    Every node taken is handed in once, by `done` or by `lose`. Among ready nodes the one
    with the largest priority comes first; ties are sorted. Not safe for use by several threads.
    """

    def __init__(self) -> None:
        self._dependents: dict[K, list[K]] = {}  # of every node that is not done
        self._waiting: dict[K, int] = {}  # for how many dependencies
        self._ready: list[tuple[float, K]] = []  # a heap
        self._running: set[K] = set()
        self._failed: dict[K, int] = {}
        self._dead: set[K] = set()  # failed or lost
        self._rank: dict[K, float] = {}  # the priority, negated

    def __len__(self) -> int:
        """How many nodes are neither done nor failed nor lost."""
        return len(self._dependents) - len(self._dead)

    def add(self, graph: Mapping[K, Collection[K]], priority: Mapping[K, float] | None = None) -> None:
        """Add new nodes (node -> its dependencies, new or earlier ones that are not done).

        Priority is 0 where none is given. What depends on a failed or lost node is lost as well.

        Raises:
            GraphError: as for `arrange`, or a node is there already; nothing was added.
        """
        _checked(graph, self._dependents)
        self._dependents.update((key, []) for key in graph)
        self._rank.update((key, -priority[key]) for key in graph if priority and key in priority)
        for key, dependencies in graph.items():
            self._waiting[key] = len(dependencies) + 1
            for need in dependencies:
                self._dependents[need].append(key)
                if need in self._dead:
                    self._bury(key)
            self._advance(key)

    def take(self) -> K | None:
        """The next ready node, which now runs; None when nothing is ready at this moment."""
        key = heapq.heappop(self._ready)[1] if self._ready else None
        if key is not None:
            self._running.add(key)
        return key

    def done(self, key: K) -> None:
        """`key` is finished and forgotten: its dependents come one step nearer."""
        self._hand_in(key)
        for dependent in self._dependents.pop(key):
            self._advance(dependent)

    def lose(self, key: K) -> None:
        """`key` has failed: its dependents, near and far, never become ready; `culprits` has them."""
        self._hand_in(key)
        self._failed[key] = len(self._failed)
        self._bury(key)

    def culprits(self) -> dict[K, tuple[K, ...]]:
        """Each lost dependent -> the failed nodes because of which it is lost, in the order of failing."""
        needs: dict[K, list[K]] = {key: [] for key in self._dead}
        for key in needs:
            for dependent in self._dependents[key]:
                needs[dependent].append(key)
        found: dict[K, tuple[K, ...]] = {key: (key,) for key in self._failed}
        for key in arrange(needs):
            because = {found[need] for need in needs[key]}
            if len(because) > 1:  # else it shares the tuple of what it needs, as along a chain
                because = {tuple(sorted(set().union(*because), key=self._failed.__getitem__))}
            if because:
                found[key] = because.pop()
        return {key: names for key, names in found.items() if key not in self._failed}

    def _advance(self, key: K) -> None:
        self._waiting[key] -= 1
        if not self._waiting[key]:
            del self._waiting[key]
            heapq.heappush(self._ready, (self._rank.pop(key, 0.0), key))

    def _hand_in(self, key: K) -> None:
        if key not in self._running:
            raise GraphError(f"{key!r} is given back but not running: take it first, give it back once")
        self._running.remove(key)

    def _bury(self, key: K) -> None:
        walk = [key]
        while walk:
            if (each := walk.pop()) not in self._dead:
                self._dead.add(each)
                walk.extend(self._dependents[each])


def _checked(graph: Mapping[K, Collection[K]], earlier: Container[K]) -> TopologicalSorter[K]:
    for key, dependencies in graph.items():
        if key in earlier:
            raise GraphError(f"{key!r} is a node of the graph already")
        for need in dependencies:
            if need == key:
                raise GraphError(f"{key!r} depends on itself")
            if need not in graph and need not in earlier:
                raise GraphError(f"{key!r} depends on {need!r}, which is no node of the graph")
    sorter: TopologicalSorter[K] = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        needs = [str(each) for each in reversed(error.args[1][1:])]
        start = needs.index(min(needs))  # the smallest first, arrows from a node to what it needs
        raise GraphError("cycle: " + " -> ".join([*needs[start:], *needs[: start + 1]])) from None
    return sorter
