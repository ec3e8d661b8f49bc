"""The runner over recording stubs: it must know keys and requests, and nothing of what it drives."""

import subprocess
import sys
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.resources.stubs import PENDING, Stub, step_of
from treadle.engine.resources.runner import StepRunner, topo_sort
from treadle.engine.resources.step import (
    NO_ROOM,
    READY,
    AdmitOutcome,
    FullAdmitOutcome,
    NodeResourceSpec,
    Refusal,
    StepContext,
)
from treadle.errors import EngineError, GraphError, UnknownNameError


class Spec:
    """Only what `topo_sort` may look at."""

    def __init__(self, *depends_on: str) -> None:
        self.depends_on: Collection[str] = depends_on


def test_dependencies_come_first() -> None:
    """A plan reads the plans it depends on, so they must be there."""
    assert topo_sort({"attn": Spec("kv"), "kv": Spec(), "rope": Spec("kv")}) == ("kv", "attn", "rope")


def test_ties_are_alphabetical() -> None:
    """Lock-step ranks must visit resources alike, whatever the order in which they were built."""
    assert topo_sort({"c": Spec(), "a": Spec(), "b": Spec()}) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("graph", "named"),
    [
        ({"kv": Spec("pool")}, "pool"),
        ({"kv": Spec("kv")}, "kv"),
        ({"a": Spec("b"), "b": Spec("a")}, "a -> b -> a"),
    ],
)
def test_a_graph_without_order_is_refused_by_name(graph: dict[str, Spec], named: str) -> None:
    """Found at load, by the keys at fault; found in a step it would be a missing plan."""
    with pytest.raises(ValueError, match=named) as caught:
        topo_sort(graph)
    assert isinstance(caught.value, GraphError)


def test_topo_sort_takes_specs_and_built_resources() -> None:
    """One order for what a deployment declares and for what is built from it."""
    specs = {"b": NodeResourceSpec("attention", ("a",)), "a": NodeResourceSpec("kv cache")}
    built = {"b": Stub("b", [], "a"), "a": Stub("a", [])}
    assert topo_sort(specs) == topo_sort(built) == ("a", "b")


def test_order_and_resources_are_shown() -> None:
    """Collaborators sweep in the runner's own order, and cannot change what it drives."""
    stubs = {"b": Stub("b", []), "a": Stub("a", [])}
    runner = StepRunner(stubs)
    assert runner.order == ("a", "b")
    assert dict(runner.resources) == stubs
    with pytest.raises(TypeError):
        runner.resources["c"] = Stub("c", [])  # type: ignore[index]


def test_a_node_sees_its_own_resources_in_order() -> None:
    """Another node's cache says nothing about this node's step."""
    runner = StepRunner(
        {"b": Stub("b", []), "a": Stub("a", []), "c": Stub("c", [])}, {"one": {"c", "a"}, "two": ["b"]}
    )
    assert runner.keys_of("one") == ("a", "c")
    assert runner.keys_of("two") == ("b",)
    assert runner.keys_of() == ("a", "b", "c")


def test_an_unlisted_node_is_an_error() -> None:
    """Falling back to all resources would gate a node on what it does not own."""
    runner = StepRunner({"a": Stub("a", [])}, {"one": ["a"]})
    with pytest.raises(UnknownNameError, match=r"stranger.*one"):
        runner.keys_of("stranger")


def test_without_a_node_map_every_node_owns_all() -> None:
    """A single node needs no map."""
    assert StepRunner({"a": Stub("a", [])}).keys_of("any") == ("a",)


def test_a_node_map_naming_an_unknown_key_is_refused() -> None:
    """A misspelt key would leave the node without its cache."""
    with pytest.raises(UnknownNameError, match="kb"):
        StepRunner({"kv": Stub("kv", [])}, {"one": ["kb"]})


def test_ingest_goes_in_order_and_gives_overrides_only_to_their_key() -> None:
    """What one resource is told must not leak into another."""
    calls: list[str] = []
    stubs = {"b": Stub("b", calls, "a"), "a": Stub("a", calls)}
    StepRunner(stubs).ingest_request("r", {"b": "for b"})
    assert calls == ["ingest a r", "ingest b r"]
    assert stubs["a"].overrides == {"r": None}
    assert stubs["b"].overrides == {"r": "for b"}


def test_ingest_of_a_live_request_changes_nothing() -> None:
    """A request may be announced twice; opening it twice would lose what it stored."""
    calls: list[str] = []
    runner = StepRunner({"a": Stub("a", calls)})
    runner.ingest_request("r")
    runner.ingest_request("r")
    runner.remove_request("r")
    runner.ingest_request("r")
    assert calls == ["ingest a r", "remove a r", "ingest a r"]


def test_overrides_for_an_unknown_key_are_refused_before_anything_opens() -> None:
    """A claim that nobody reads would be a promise that nobody keeps."""
    calls: list[str] = []
    with pytest.raises(KeyError, match="kb"):
        StepRunner({"kv": Stub("kv", calls)}).ingest_request("r", {"kb": 1})
    assert calls == []


def test_ingest_is_all_or_nothing() -> None:
    """A request that is open on some resources would hold what nobody frees."""
    calls: list[str] = []
    broken = Stub("c", calls, raises={"ingest": EngineError("no room")})
    runner = StepRunner({"a": Stub("a", calls), "b": Stub("b", calls), "c": broken, "d": Stub("d", calls)})
    with pytest.raises(EngineError, match="no room"):
        runner.ingest_request("r")
    opened = ["ingest a r", "ingest b r", "ingest c r"]
    # What raises half way may have opened a part: it is asked to forget, too.
    assert calls == [*opened, "remove c r", "remove b r", "remove a r"]


def test_remove_tries_every_resource_and_keeps_the_first_error() -> None:
    """One resource that fails to let go must not make the others leak."""
    calls: list[str] = []
    failing = {"remove": EngineError("stuck")}
    runner = StepRunner({"a": Stub("a", calls), "b": Stub("b", calls, raises=failing), "c": Stub("c", calls)})
    with pytest.raises(EngineError, match="stuck"):
        runner.remove_request("r")
    assert calls == ["remove c r", "remove b r", "remove a r"]


def test_a_step_naming_an_unknown_key_is_a_key_error_before_any_call() -> None:
    """A misspelt key would silently skip a resource, and the model would read stale state."""
    calls: list[str] = []
    runner = StepRunner({"kv": Stub("kv", calls)})
    for verb in (runner.admit, runner.plan, runner.commit, runner.rollback_admit):
        with pytest.raises(KeyError, match="kb"):
            verb(step_of("kv", "kb"))
    assert calls == []


def test_undeclared_resources_are_not_called() -> None:
    """A step without a sampled row must not ask the sampler."""
    calls: list[str] = []
    runner = StepRunner({"kv": Stub("kv", calls), "sampler": Stub("sampler", calls)})
    step = step_of("kv")
    runner.admit(step)
    runner.plan(step)
    runner.commit(step)
    assert calls == ["admit kv", "plan kv", "commit kv"]


def test_each_plan_is_filed_before_the_next_plans() -> None:
    """Attention plans from the pages that the cache has just planned."""
    stubs = {"kv": Stub("kv", []), "attn": Stub("attn", [], "kv")}
    step = step_of("kv", "attn")
    results = StepRunner(stubs).plan(step)
    assert stubs["attn"].filed == {"kv": "plan of kv"}
    assert results == step.ctx.plan_results == {"kv": "plan of kv", "attn": "plan of attn"}


def test_leftover_results_are_cleared() -> None:
    """A result of an earlier step would pass for this step's."""
    stubs = {"kv": Stub("kv", [])}
    step = step_of("kv", ctx=StepContext(plan_results={"attn": "old", "kv": "old"}))
    assert StepRunner(stubs).plan(step) == {"kv": "plan of kv"}
    assert stubs["kv"].filed == {}


@pytest.mark.parametrize(
    ("answers", "ready"), [((READY, READY), True), ((READY, PENDING), False), ((PENDING, READY), False)]
)
def test_ready_is_the_and_of_all(answers: tuple[AdmitOutcome, AdmitOutcome], ready: bool) -> None:
    """A step may run only when the last transfer has landed."""
    stubs = {key: Stub(key, [], answer=answer) for key, answer in zip("ab", answers, strict=True)}
    assert StepRunner(stubs).admit(step_of("a", "b")) == FullAdmitOutcome(ok=True, ready=ready)


def test_refusal_stops_gives_back_and_names_the_key() -> None:
    """Half an admitted step would hold pages for a pass that never runs."""
    calls: list[str] = []
    runner = StepRunner({"a": Stub("a", calls), "b": Stub("b", calls, answer=NO_ROOM), "c": Stub("c", calls)})
    outcome = runner.admit(step_of("a", "b", "c"))
    assert outcome == FullAdmitOutcome(ok=False, ready=False, reason=Refusal.ALLOCATION_FAILED, key="b")
    assert calls == ["admit a", "admit b", "rollback b", "rollback a"]


def test_an_admit_that_raises_gives_back_too_and_keeps_the_first_error() -> None:
    """A broken resource must not leak what its neighbours reserved, nor hide what broke."""
    calls: list[str] = []
    worse = Stub("a", calls, raises={"rollback": EngineError("second")})
    runner = StepRunner({"a": worse, "b": Stub("b", calls, raises={"admit": EngineError("first")})})
    with pytest.raises(EngineError, match="first") as caught:
        runner.admit(step_of("a", "b"))
    assert calls == ["admit a", "admit b", "rollback b", "rollback a"]
    assert "second" in "".join(caught.value.__notes__)


def test_rollback_admit_undoes_in_reverse_what_is_declared() -> None:
    """What was reserved last may rest on what was reserved first."""
    calls: list[str] = []
    runner = StepRunner({"a": Stub("a", calls), "b": Stub("b", calls), "c": Stub("c", calls)})
    runner.rollback_admit(step_of("a", "c"))
    assert calls == ["rollback c", "rollback a"]


def test_rolling_back_tries_every_resource_and_keeps_the_first_error() -> None:
    """A step that is broken off must not leave two resources holding because one cannot let go."""
    calls: list[str] = []
    failing = {"rollback": EngineError("stuck")}
    runner = StepRunner({"a": Stub("a", calls), "b": Stub("b", calls, raises=failing), "c": Stub("c", calls)})
    with pytest.raises(EngineError, match="stuck"):
        runner.rollback_admit(step_of("a", "b", "c"))
    assert calls == ["rollback c", "rollback b", "rollback a"]


def test_commit_happens_exactly_once_each() -> None:
    """Twice would count every token twice."""
    calls: list[str] = []
    StepRunner({"kv": Stub("kv", calls), "attn": Stub("attn", calls, "kv")}).commit(step_of("attn", "kv"))
    assert calls == ["commit kv", "commit attn"]


def test_the_runner_loads_neither_torch_nor_any_resource() -> None:
    """A conductor orders the specs of a deployment in a process that computes nothing."""
    code = (
        "import sys, treadle.engine.resources.runner\n"
        "room = 'treadle.engine.resources.'\n"
        "loaded = {name.removeprefix(room) for name in sys.modules if name.startswith(room)}\n"
        "kinds = {'attention', 'kv_cache', 'pages', 'positions', 'sampler', 'sampling'}\n"
        "assert not loaded & kinds, loaded\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.permutations(["a", "b", "c", "d", "e"]), st.data())
def test_order_depends_on_the_graph_alone(keys: list[str], data: st.DataObject) -> None:
    """Whatever the order of insertion, each resource comes after what it reads."""
    graph = {keys[0]: Spec()}
    for at in range(1, len(keys)):
        graph[keys[at]] = Spec(*data.draw(st.sets(st.sampled_from(keys[:at]))))
    order = topo_sort(graph)
    assert order == topo_sort(dict(sorted(graph.items())))
    assert all(
        order.index(need) < order.index(key) for key, spec in graph.items() for need in spec.depends_on
    )
