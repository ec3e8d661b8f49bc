"""Graphs to draw: one with awkward texts, and random ones from a fixed seed."""

import random
from collections.abc import Callable

import pytest

from treadle.integrations.graph import STATES, PlanGraph, PlanNode

AWKWARD = "a<b> & \"c\" 'd' ]] $x {y} `z` \\n é\x00"


def random_graph(steps: int, seed: int = 7) -> PlanGraph:
    rng = random.Random(seed)
    nodes = [
        PlanNode(
            f"step/{i}-{i:012x}", f"step/{i}", rng.choice([None, *STATES]), rng.choice([None, 0.5, 700.0])
        )
        for i in range(steps)
    ]
    edges = [
        (nodes[rng.randrange(i)].id, nodes[i].id) for i in range(1, steps) for _ in range(rng.randrange(4))
    ]
    return PlanGraph(nodes, edges)


@pytest.fixture
def make_graph() -> Callable[[int], PlanGraph]:
    return random_graph


@pytest.fixture
def small() -> PlanGraph:
    """read -> train -> report, and read -> report."""
    nodes = [
        PlanNode("read-0123456789ab", "read", "cached", 3.2),
        PlanNode("train-1123456789ab", AWKWARD, "drifted", 610.0, reason=f"why {AWKWARD}"),
        PlanNode("report-2123456789ab", "report"),
    ]
    read, train, report = (node.id for node in nodes)
    return PlanGraph(nodes, [(read, train), (train, report), (read, report)])
