"""Order is the promise itself: a step never starts before what it needs."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import GraphError
from treadle.kernel import Frontier, arrange

Graph = dict[int, set[int]]


@st.composite
def acyclic(draw: st.DrawFn, nodes: int = 7) -> Graph:
    """A random graph whose node names say nothing about its order."""
    names = draw(st.permutations(range(draw(st.integers(0, nodes)))))
    return {
        name: draw(st.sets(st.sampled_from(names[:at]))) if at else set() for at, name in enumerate(names)
    }


@st.composite
def any_graph(draw: st.DrawFn) -> Graph:
    nodes = range(draw(st.integers(1, 5)))
    return {node: draw(st.sets(st.sampled_from(nodes))) for node in nodes}


def in_order(graph: Graph, order: tuple[int, ...]) -> bool:
    place = {key: at for at, key in enumerate(order)}
    return all(place[need] < place[key] for key, needs in graph.items() for need in needs)


def layer(graph: Graph, key: int) -> int:
    return 1 + max((layer(graph, need) for need in graph[key]), default=-1)


@given(acyclic())
def test_arrange_puts_dependencies_first_layer_by_layer_ties_sorted(graph: Graph) -> None:
    """The same graph must give the same order on every machine, so ties cannot be left to chance."""
    order = arrange(graph)
    assert in_order(graph, order)
    assert order == tuple(sorted(graph, key=lambda key: (layer(graph, key), key)))


@given(any_graph())
def test_arrange_refuses_exactly_the_graphs_that_brute_force_cannot_order(graph: Graph) -> None:
    possible = any(in_order(graph, order) for order in permutations(graph))
    if possible:
        arrange(graph)
    else:
        with pytest.raises(GraphError):
            arrange(graph)


@given(acyclic())
def test_the_order_does_not_depend_on_how_the_graph_was_written_down(graph: Graph) -> None:
    assert arrange(graph) == arrange(dict(reversed(graph.items())))


def test_a_cycle_is_named_as_a_path_from_each_node_to_what_it_needs() -> None:
    with pytest.raises(GraphError, match=r"^cycle: a -> c -> b -> a$"):
        arrange({"a": ["c"], "b": ["a"], "c": ["b"], "free": []})


@given(any_graph())
def test_every_arrow_of_a_cycle_path_is_an_edge(graph: Graph) -> None:
    try:
        arrange(graph)
    except GraphError as error:
        if "cycle" in str(error):
            path = [int(each) for each in str(error).removeprefix("cycle: ").split(" -> ")]
            assert path[0] == path[-1]
            assert len(set(path)) == len(path) - 1 >= 2
            assert all(need in graph[key] for key, need in pairwise(path))


def test_an_unknown_dependency_is_an_error_and_not_a_new_node() -> None:
    with pytest.raises(GraphError, match="'b' depends on 'ghost', which is no node of the graph"):
        arrange({"a": [], "b": ["ghost"]})


def test_a_self_dependency_is_named() -> None:
    with pytest.raises(GraphError, match="'a' depends on itself"):
        arrange({"a": ["a"]})


def test_a_chain_of_ten_thousand_needs_no_recursion() -> None:
    assert len(arrange({at: [at - 1] if at else [] for at in range(10_000)})) == 10_000


@given(acyclic(nodes=10), st.data())
def test_frontier_against_a_model(graph: Graph, data: st.DataObject) -> None:
    """Whatever finishes or fails, in whatever order: nothing early, nothing twice, nothing forgotten."""
    frontier = Frontier(graph)
    done: set[int] = set()
    failed: set[int] = set()
    lost: set[int] = set()
    running: list[int] = []
    taken: list[int] = []
    while done | failed | lost != set(graph):
        while not running or data.draw(st.booleans(), label="take"):
            key = frontier.take()
            if key is None:
                break
            assert graph[key] <= done
            running.append(key)
            taken.append(key)
        assert running, "nodes are left, and none is ready or running"
        key = running.pop(data.draw(st.integers(0, len(running) - 1), label="which"))
        if data.draw(st.booleans(), label="ends well"):
            frontier.done(key)
            done.add(key)
        else:
            failed.add(key)
            frontier.lose(key)
            assert lost <= set(frontier.culprits())
            lost = set(frontier.culprits())
    assert frontier.take() is None
    assert len(taken) == len(set(taken))
    assert {key: set(names) for key, names in frontier.culprits().items()} == _culprits(graph, failed)


def _culprits(graph: Graph, failed: set[int]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for key in arrange(graph):
        found[key] = {need for need in graph[key] if need in failed}.union(
            *(found[need] for need in graph[key])
        )
    return {key: names for key, names in found.items() if names}


def test_the_largest_priority_goes_first_and_ties_go_by_name() -> None:
    frontier = Frontier({"a": [], "b": [], "c": [], "d": []}, priority={"c": 2, "b": 1, "d": 1})
    assert [frontier.take() for _ in range(5)] == ["c", "b", "d", "a", None]


def test_a_node_is_given_back_once() -> None:
    """Counting a node twice would start a dependent before its other needs are there."""
    frontier = Frontier({"a": [], "b": ["a"]})
    with pytest.raises(GraphError, match="'a' is given back but not running"):
        frontier.done("a")
    frontier.take()
    frontier.done("a")
    with pytest.raises(GraphError, match="'a' is given back but not running"):
        frontier.lose("a")


def test_a_hundred_thousand_nodes_pass_through() -> None:
    """Quadratic work would make this take hours; the time itself is measured in `bench/kernel.py`."""
    graph = {at: {at // 2, max(0, at - 7)} - {at} for at in range(100_000)}
    frontier = Frontier(graph)
    count = 0
    while (key := frontier.take()) is not None:
        frontier.done(key)
        count += 1
    assert count == len(graph)


def test_many_failures_above_a_long_chain_cost_no_more_than_their_number() -> None:
    """Walking the whole chain for each failure makes a broken layer as slow as the run itself."""
    size = 3_000
    graph: dict[str, list[str]] = {f"a{at:05}": [] for at in range(size)}
    graph["b"] = list(graph)
    graph |= {f"c{at:05}": [f"c{at - 1:05}" if at else "b"] for at in range(size)}
    frontier = Frontier(graph)
    for _ in range(size):
        frontier.lose(str(frontier.take()))
    culprits = frontier.culprits()
    assert len(culprits) == size + 1
    assert culprits["b"] == tuple(each for each in graph if each.startswith("a"))
    assert all(culprits[key] is culprits["b"] for key in graph if key.startswith("c"))
