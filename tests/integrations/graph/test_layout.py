"""A drawing keeps what it must: every edge leads on to the right, and no two boxes overlap."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.integrations.graph.layout import BOX_HEIGHT, Box, lay_out
from treadle.integrations.graph.model import PlanGraph, PlanNode
from treadle.integrations.graph.spread import spread

MakeGraph = Callable[[int], PlanGraph]


def fan(steps: int) -> PlanGraph:
    return PlanGraph(
        [PlanNode(str(i), f"s{i}") for i in range(steps)], [("0", str(i)) for i in range(1, steps)]
    )


def ladder(steps: int) -> PlanGraph:
    """A chain with edges across 10 and 100 layers, more than get slots of their own."""
    edges = [(str(i - d), str(i)) for i in range(steps) for d in (1, 10, 100) if i >= d]
    return PlanGraph([PlanNode(str(i), f"s{i}") for i in range(steps)], edges)


def columns(boxes: dict[str, Box]) -> dict[int, list[Box]]:
    found: dict[int, list[Box]] = {}
    for box in sorted(boxes.values(), key=lambda box: box.y):
        found.setdefault(box.layer, []).append(box)
    return found


@pytest.mark.parametrize("graph", [fan(60), ladder(300)], ids=["fan", "ladder"])
def test_shapes(graph: PlanGraph) -> None:
    check(graph)


@pytest.mark.parametrize("steps", [1, 2, 12, 200, 1000])
def test_random_graphs(make_graph: MakeGraph, steps: int) -> None:
    check(make_graph(steps))


def check(graph: PlanGraph) -> None:
    drawing = lay_out(graph)
    boxes = dict(drawing.boxes)
    assert set(boxes) == {node.id for node in graph.nodes}
    assert set(drawing.paths) == set(graph.edges)
    for source, target in graph.edges:
        assert boxes[source].x + boxes[source].width < boxes[target].x
        assert drawing.paths[source, target].startswith(f"M{boxes[source].x + boxes[source].width:.1f} ")
    for column in columns(boxes).values():
        assert len({box.x for box in column}) == 1
        assert all(below.y - above.y >= BOX_HEIGHT for above, below in pairwise(column))
    for box in boxes.values():
        assert 0 <= box.x <= box.x + box.width <= drawing.width + 0.01
        assert -0.01 <= box.y <= box.y + BOX_HEIGHT <= drawing.height + 0.01
    assert lay_out(graph) == drawing


def test_a_graph_without_steps_is_empty() -> None:
    drawing = lay_out(PlanGraph([], []))
    assert (drawing.boxes, drawing.width, drawing.height) == ({}, 0, 0)


def test_a_parent_is_beside_the_middle_of_its_children() -> None:
    boxes = lay_out(fan(6)).boxes
    assert boxes["0"].y == pytest.approx(sum(boxes[str(i)].y for i in range(1, 6)) / 5)


def test_two_chains_do_not_cross() -> None:
    edges = [("a0", "a1"), ("b0", "b1"), ("a1", "a2"), ("b1", "b2")]
    names = ["b2", "a0", "b1", "a2", "b0", "a1"]
    boxes = lay_out(PlanGraph([PlanNode(name, name) for name in names], edges)).boxes
    sides = {boxes[f"a{i}"].y < boxes[f"b{i}"].y for i in range(3)}
    assert len(sides) == 1


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8))
def test_spread_keeps_room_and_moves_no_more_than_needed(wish: list[float]) -> None:
    """Middles that are apart already stay; others part around their mean."""
    placed = spread(wish, [10.0] * len(wish), gap=2)
    assert all(right - left >= 12 - 1e-6 for left, right in pairwise(placed))
    assert sum(placed) == pytest.approx(sum(wish), abs=1e-6)
    assert spread(placed, [10.0] * len(wish), gap=2) == pytest.approx(placed)
