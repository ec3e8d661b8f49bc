"""How long the kernel takes: a frontier of 100,000 nodes, against bare `graphlib`. Medians of five runs.

python bench/kernel.py
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from graphlib import TopologicalSorter

from treadle.kernel import Frontier

NODES = 100_000


def layered(nodes: int, needs: int = 3, reach: int = 1_000, seed: int = 7) -> dict[int, list[int]]:
    """A random graph: each node needs up to `needs` of the `reach` nodes before it."""
    chance = random.Random(seed)
    return {at: chance.sample(range(max(0, at - reach), at), min(needs, at)) for at in range(nodes)}


def through_frontier(graph: dict[int, list[int]]) -> None:
    frontier: Frontier[int] = Frontier()
    frontier.add(graph)
    while (key := frontier.take()) is not None:
        frontier.done(key)


def through_graphlib(graph: dict[int, list[int]]) -> None:
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    while ready := sorter.get_ready():
        sorter.done(*ready)


def median_seconds(
    work: Callable[[dict[int, list[int]]], None], graph: dict[int, list[int]], runs: int = 5
) -> float:
    """The median wall time of `runs` runs."""
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        work(graph)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def main() -> None:
    graph = layered(NODES)
    bare = median_seconds(through_graphlib, graph)
    ours = median_seconds(through_frontier, graph)
    edges = sum(map(len, graph.values()))
    print(f"{NODES:,} nodes, {edges:,} edges")
    print(f"Frontier {ours:.2f} s, graphlib {bare:.2f} s, ratio {ours / bare:.1f}")


if __name__ == "__main__":
    main()
