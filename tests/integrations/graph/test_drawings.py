"""Every step and edge is in the text, all letters are escaped, and the same graph gives the same text."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from treadle.errors import ArgumentError, GraphError, UnknownNameError
from treadle.integrations.graph import PlanGraph, PlanNode, to_html, to_mermaid, to_svg
from treadle.integrations.graph.model import duration

SVG = "{http://www.w3.org/2000/svg}"


def elements(svg: str, name: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(SVG + name))


def of_class(svg: str, tag: str, name: str) -> list[ET.Element]:
    return [each for each in elements(svg, tag) if name in str(each.get("class")).split()]


def test_the_svg_has_every_step_and_every_edge(make_graph: Callable[[int], PlanGraph]) -> None:
    graph = make_graph(50)
    svg = to_svg(graph, "A plan")
    names = ["".join(each.itertext()) for each in of_class(svg, "text", "name")]
    assert names == [node.name for node in graph.nodes]
    assert len(of_class(svg, "path", "edge")) == len(graph.edges)
    for node, box in zip(graph.nodes, of_class(svg, "g", "step"), strict=True):
        assert str(box.get("class")).split() == ["step", node.state or "plain"]
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert to_svg(graph, "A plan") == svg


def test_a_label_stands_below_the_name() -> None:
    """Of ten boxes of one name one wants to know which is which."""
    nodes = [PlanNode(f"a-{n}", "a", "run", None, "", f"seed={n}") for n in range(2)]
    nodes.append(PlanNode("b-1", "b", label="x" * 100))
    graph = PlanGraph(nodes, [])
    below = ["".join(each.itertext()) for each in of_class(to_svg(graph), "text", "id")]
    assert below == ["seed=0", "seed=1", "x" * 35 + "…"]
    assert "seed#61;1" in to_mermaid(graph)
    assert [step["label"] for step in json.loads(Page(to_html(graph)).scripts[0])][:2] == ["seed=0", "seed=1"]


def test_texts_in_the_svg_are_escaped(small: PlanGraph) -> None:
    """ElementTree reads them back; what XML cannot hold became a mark."""
    svg = to_svg(small, 'title "<&>"')
    assert elements(svg, "title")[0].text == 'title "<&>"'
    tips = [each.find(f"{SVG}title") for each in of_class(svg, "g", "step")]
    lines = str(tips[1].text).split("\n") if tips[1] is not None else []
    assert lines[0] == small.nodes[1].name.replace("\0", "\ufffd")
    assert lines[2] == "drifted · ~10 min 10 s"


def test_the_legend_counts_the_states_that_occur(small: PlanGraph) -> None:
    keys = ["".join(each.itertext()) for each in of_class(to_svg(small), "g", "key")]
    assert keys == ["cached 1", "drifted 1"]


def test_mermaid_has_every_step_and_every_edge(make_graph: Callable[[int], PlanGraph]) -> None:
    graph = make_graph(50)
    lines = to_mermaid(graph).splitlines()
    assert lines[0] == "flowchart LR"
    assert sum(" --> " in line for line in lines) == len(graph.edges)
    assert sum('["' in line for line in lines) == len(graph.nodes)
    assert sum("classDef" in line for line in lines) == len(graph.counts())


def test_mermaid_labels_are_escaped(small: PlanGraph) -> None:
    label = to_mermaid(small).splitlines()[2]
    match = re.fullmatch(r'    s1\["([^"]*)"\]:::drifted', label)
    assert match is not None
    assert not set("<>&\"'`$\\{}[]") & set(match[1].replace("<br/>", ""))
    assert match[1].startswith("a#60;b#62; #38; #34;c#34;")


class Page(HTMLParser):
    """Keeps what the scripts hold and what the page would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.fetched: list[str] = []
        self.steps = 0
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._script = tag == "script"
        self.steps += str(given.get("class")).startswith("step ")
        self.fetched += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts.append(data)
            self._script = False


def test_the_page_stands_alone_and_has_all_data(small: PlanGraph) -> None:
    text = to_html(small, "</title><script>alert(1)</script>")
    page = Page(text)
    assert page.fetched == ["href=data:,"]
    assert page.steps == len(small.nodes)
    data, script = page.scripts
    assert "alert" not in script
    steps = json.loads(data)
    assert [step["name"] for step in steps] == [node.name for node in small.nodes]
    assert [step["needs"] for step in steps] == [[], [0], [1, 0]]
    assert to_html(small, "</title><script>alert(1)</script>") == text


def test_what_is_no_graph_is_refused() -> None:
    a, b = PlanNode("a", "a"), PlanNode("b", "b")
    with pytest.raises(GraphError, match="'a' is there twice"):
        PlanGraph([a, a], [])
    with pytest.raises(GraphError, match="to 'x', which is no step"):
        PlanGraph([a], [("a", "x")])
    with pytest.raises(GraphError, match="'x', which is no node"):
        PlanGraph([a], [("x", "a")])
    with pytest.raises(GraphError, match="cycle: a -> b -> a"):
        PlanGraph([a, b], [("a", "b"), ("b", "a")])
    with pytest.raises(UnknownNameError, match="known: blocked, cached, done, drifted"):
        PlanNode("a", "a", "ready")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="seconds of 0 or more, got nan"):
        PlanNode("a", "a", "run", float("nan"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.31, "0.3 s"),
        (9.97, "10 s"),
        (59.7, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.9, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
