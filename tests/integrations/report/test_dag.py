"""The drawing of a graph: nothing overlaps, arrows point down, the same graph gives the same picture."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import GraphError
from treadle.integrations.report.dag import Box, Sizes, draw_graph


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    names = [f"s{number}" for number in range(draw(st.integers(0, 14)))]
    deps = {
        name: draw(st.lists(st.sampled_from(names[:i]), unique=True)) if i else []
        for i, name in enumerate(names)
    }
    return {name: deps[name] for name in draw(st.permutations(names))}


def _apart(a: Box, b: Box) -> bool:
    side = a.x + a.width <= b.x + 1e-6 or b.x + b.width <= a.x + 1e-6
    return side or a.y + a.height <= b.y or b.y + b.height <= a.y


@given(graphs())
def test_no_two_boxes_overlap_and_all_lie_inside(graph: dict[str, list[str]]) -> None:
    """A box under another one is a step that nobody sees."""
    drawing = draw_graph(graph)
    assert sorted(box.id for box in drawing.boxes) == sorted(graph)
    for number, box in enumerate(drawing.boxes):
        assert box.x >= -1e-6
        assert box.x + box.width <= drawing.width + 1e-6
        assert box.y + box.height <= drawing.height
        assert all(_apart(box, other) for other in drawing.boxes[:number])


@given(graphs())
def test_edges_lead_down_from_box_to_box(graph: dict[str, list[str]]) -> None:
    """An arrow that points up would say that a step came before what it needs."""
    drawing = draw_graph(graph)
    boxes = {box.id: box for box in drawing.boxes}
    assert sorted((edge.target, edge.source) for edge in drawing.edges) == sorted(
        (step, dep) for step in graph for dep in graph[step]
    )
    for edge in drawing.edges:
        source, target = boxes[edge.source], boxes[edge.target]
        numbers = [float(each) for each in re.findall(r"-?[\d.]+", edge.path)]
        assert numbers[0] == pytest.approx(source.x + source.width / 2, abs=0.06)
        assert numbers[1] == source.y + source.height
        assert numbers[-2:] == [pytest.approx(target.x + target.width / 2, abs=0.06), target.y]
        assert source.y < target.y


@given(graphs())
def test_the_order_of_the_steps_does_not_matter(graph: dict[str, list[str]]) -> None:
    """The same experiment has to look the same on each page."""
    assert draw_graph(dict(sorted(graph.items()))) == draw_graph(graph)


def test_a_long_edge_passes_beside_the_boxes_between() -> None:
    """An edge hidden behind a box looks like two edges."""
    sizes = Sizes()
    drawing = draw_graph({"a": [], "b": ["a"], "c": ["a", "b"]}, sizes)
    long = next(edge for edge in drawing.edges if (edge.source, edge.target) == ("a", "c"))
    box = next(box for box in drawing.boxes if box.id == "b")
    bend = float(re.findall(r"([\d.]+) [\d.]+V", long.path)[0])
    assert bend < box.x or bend > box.x + box.width


def test_a_cycle_is_refused() -> None:
    """It has no layers."""
    with pytest.raises(GraphError, match="cycle"):
        draw_graph({"a": ["b"], "b": ["a"]})
