"""Order is the promise itself: a step never starts before what it needs."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import GraphError
from treadle.kernel import arrange

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
