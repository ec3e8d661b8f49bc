"""A frontier hands nodes out early enough, never too early, and never twice, while its graph grows."""

import sys
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from treadle.errors import GraphError
from treadle.kernel import Frontier, arrange


def frontier_of(graph: Mapping[str, Collection[str]]) -> Frontier[str]:
    frontier: Frontier[str] = Frontier()
    frontier.add(graph)
    return frontier


class AgainstAModel(RuleBasedStateMachine):
    """Whatever is added, finishes or fails, in whatever order; the model recounts all of it each time."""

    def __init__(self) -> None:
        super().__init__()
        self.frontier: Frontier[int] = Frontier()
        self.needs: dict[int, set[int]] = {}
        self.priority: dict[int, float] = {}
        self.done: set[int] = set()
        self.failed: list[int] = []
        self.running: list[int] = []

    @rule(data=st.data(), count=st.integers(0, 5))
    def add(self, data: st.DataObject, count: int) -> None:
        """Names say nothing about the order, nor does the place in the mapping."""
        free = [name for name in range(200) if name not in self.needs]
        names = data.draw(st.permutations(free).map(lambda order: order[:count]), label="new")
        known = sorted(set(self.needs) - self.done)
        graph: dict[int, set[int]] = {}
        for name in names:
            choice = [*known[-12:], *graph]
            graph[name] = data.draw(st.sets(st.sampled_from(choice), max_size=3)) if choice else set()
        priority = data.draw(st.dictionaries(st.sampled_from(names), st.integers(-2, 2))) if names else {}
        self.frontier.add(dict(data.draw(st.permutations(list(graph.items())))), priority)
        self.needs |= graph
        self.priority |= priority

    @rule()
    def take(self) -> None:
        ready = sorted(self.ready(), key=lambda key: (-self.priority.get(key, 0), key))
        key = self.frontier.take()
        assert key == next(iter(ready), None)
        if key is not None:
            self.running.append(key)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), end=st.sampled_from(["done", "done", "lose"]))
    def hand_in(self, data: st.DataObject, end: str) -> None:
        key = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        getattr(self.frontier, end)(key)
        if end == "done":
            self.done.add(key)
        else:
            self.failed.append(key)

    @invariant()
    def what_is_left_is_counted(self) -> None:
        gone = self.done.union(self.failed, self.culprits())
        assert len(self.frontier) == len(self.needs) - len(gone)

    @invariant()
    def lost_nodes_name_their_culprits_in_the_order_of_failing(self) -> None:
        assert self.frontier.culprits() == self.culprits()

    def ready(self) -> list[int]:
        begun = self.done.union(self.failed, self.running)
        return [key for key in self.needs if key not in begun and self.needs[key] <= self.done]

    def culprits(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, set[int]] = {}
        for key in arrange(self.needs):
            found[key] = (
                self.needs[key].intersection(self.failed).union(*(found[need] for need in self.needs[key]))
            )
        return {key: tuple(sorted(names, key=self.failed.index)) for key, names in found.items() if names}


TestAgainstAModel = AgainstAModel.TestCase


@given(st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 7), max_size=3)), max_size=4))
def test_a_chunk_that_is_refused_changes_nothing(chunk: list[tuple[int, set[int]]]) -> None:
    """Node 6 is done, 5 runs, 4 waits for it; the chunk is refused or taken as a whole."""
    graph = dict(chunk)
    frontier: Frontier[int] = Frontier()
    frontier.add({6: [], 5: [], 4: [5]}, {6: 2, 5: 1})
    for _ in range(2):
        frontier.take()
    frontier.done(6)
    try:
        frontier.add(graph)
    except GraphError:
        assert len(frontier) == 2
        frontier.done(5)
        assert [frontier.take(), frontier.take()] == [4, None]
        frontier.done(4)
        assert len(frontier) == 0
    else:
        assert not graph.keys() & {4, 5}
        assert all(needs <= graph.keys() | {4, 5} for needs in graph.values())
        arrange({5: [], 4: [5], **graph})
        assert len(frontier) == 2 + len(graph)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ({"c": ["ghost"]}, "'c' depends on 'ghost', which is no node of the graph"),
        ({"c": ["gone"]}, "'c' depends on 'gone', which is no node of the graph"),
        ({"c": ["c"]}, "'c' depends on itself"),
        ({"a": []}, "'a' is a node of the graph already"),
        ({"c": ["d", "a"], "d": ["e"], "e": ["c"]}, "^cycle: c -> d -> e -> c$"),
    ],
)
def test_what_is_wrong_in_a_chunk_is_named(graph: dict[str, list[str]], message: str) -> None:
    frontier = frontier_of({"gone": []})
    frontier.take()
    frontier.done("gone")
    frontier.add({"a": []})
    with pytest.raises(GraphError, match=message):
        frontier.add(graph)


def test_the_largest_priority_goes_first_and_ties_go_by_name() -> None:
    frontier: Frontier[str] = Frontier()
    frontier.add({"a": [], "b": [], "c": [], "d": []}, priority={"c": 2, "b": 1, "d": 1})
    assert [frontier.take() for _ in range(5)] == ["c", "b", "d", "a", None]


def test_a_node_is_handed_in_once() -> None:
    """Counting a node twice would start a dependent before its other needs are there."""
    frontier = frontier_of({"a": [], "b": ["a"]})
    with pytest.raises(GraphError, match="'a' is given back but not running"):
        frontier.done("a")
    frontier.take()
    frontier.done("a")
    for hand_in in (frontier.done, frontier.lose):
        with pytest.raises(GraphError, match="'a' is given back but not running"):
            hand_in("a")


def test_what_depends_on_a_failure_of_long_ago_is_lost_as_well() -> None:
    frontier = frontier_of({"a": [], "b": ["a"]})
    frontier.take()
    frontier.lose("a")
    frontier.add({"d": ["c"], "c": ["b"], "e": ["d", "free"], "free": []})
    assert [frontier.take(), frontier.take()] == ["free", None]
    assert frontier.culprits() == dict.fromkeys("bcde", ("a",))
    assert len(frontier) == 1


def test_a_hundred_thousand_nodes_pass_through() -> None:
    """Quadratic work would make this take hours; the time itself is measured in `bench/kernel.py`."""
    graph = {at: {at // 2, max(0, at - 7)} - {at} for at in range(100_000)}
    frontier: Frontier[int] = Frontier()
    frontier.add(graph)
    count = 0
    while (key := frontier.take()) is not None:
        frontier.done(key)
        count += 1
    assert count == len(graph)
    assert len(frontier) == 0


def test_a_frontier_keeps_nothing_of_what_is_done() -> None:
    """A million steps stream through a runner; what it keeps must not grow with those behind it."""
    frontier: Frontier[int] = Frontier()

    def kept() -> int:
        return sum(sys.getsizeof(each) for each in vars(frontier).values())

    def stream(numbers: range) -> None:
        for number in numbers:
            frontier.add({number: [number - 1] if number else []}, {number: number})
            if number:
                frontier.done(number - 1)
            frontier.take()

    stream(range(1_000))
    before = kept()
    stream(range(1_000, 20_000))
    assert kept() <= before
    assert len(frontier) == 1


def test_many_failures_above_a_long_chain_cost_no_more_than_their_number() -> None:
    """Walking the whole chain for each failure makes a broken layer as slow as the run itself."""
    size = 3_000
    graph: dict[str, list[str]] = {f"a{at:05}": [] for at in range(size)}
    graph["b"] = list(graph)
    graph |= {f"c{at:05}": [f"c{at - 1:05}" if at else "b"] for at in range(size)}
    frontier = frontier_of(graph)
    for _ in range(size):
        frontier.lose(str(frontier.take()))
    culprits = frontier.culprits()
    assert len(culprits) == size + 1
    assert culprits["b"] == tuple(each for each in graph if each.startswith("a"))
    assert all(culprits[key] is culprits["b"] for key in graph if key.startswith("c"))
