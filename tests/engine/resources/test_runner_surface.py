"""All that the runner can be asked: by which names, and that somebody asks for each of them here."""

import ast
import inspect
from pathlib import Path

import pytest

from treadle.engine.resources.runner import StepRunner, topo_sort

WALKS = "request_ids, node_name=None, graph_walk=None, request_walks=None"
METHODS = {
    "admit": "step",
    "admit_retrieve": "rid, node_name, graph_walk, published=None",
    "adopt_cached_prefix": "rid, node_name, graph_walk, leases, caught_up",
    "apply_cached_prefix": "rid, node_name, graph_walk, inputs, prefix",
    "build_accelerator_graph_buffers": "slots, max_bs, max_seq_len, node_name=None",
    "clear_preplan": "",
    "commit": "step",
    "complete_cached_walk": "rid, node_name, graph_walk",
    "extend_prefix_chains": "rid, node_name, graph_walk, outputs, keys=None",
    "extend_prefix_chains_batch": "request_ids, node_name, walk_of, host_rows, outputs, keys",
    "ingest_capture_row": "rid",
    "ingest_request": "rid, overrides=None",
    "lease_cached_prefix": "rid, node_name, graph_walk",
    "page_trails": "node_name",
    "plan": "step",
    "pre_admit": "step",
    "pre_plan": "step",
    "prefix_chain_keys": "node_name",
    "publish": WALKS,
    "publish_after_stop": WALKS,
    "publish_from_snapshots": f"snapshots, {WALKS}",
    "publish_snapshot": WALKS,
    "release_cached_prefix": "rid, node_name, graph_walk",
    "remove_request": "rid",
    "resolve_cached_prefix": "rid, node_name, graph_walk, inputs",
    "rollback_admit": "step",
}
PROPERTIES = ("order", "resources", "staged")
TESTS = sorted(Path(__file__).parent.glob("test_runner*.py"))


def parameters(callable_: object) -> str:
    assert callable(callable_)
    found = [each for each in inspect.signature(callable_).parameters.values() if each.name != "self"]
    return ", ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default}" for each in found
    )


def functions() -> list[ast.FunctionDef]:
    trees = [ast.parse(path.read_text(), path.name) for path in TESTS]
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [each for each in found if each.name.startswith("test_")]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_called_by_its_published_names(name: str) -> None:
    """Engines call by name and by place: a parameter that moves breaks them without a word."""
    assert parameters(getattr(StepRunner, name)) == METHODS[name]


def test_the_runner_is_built_by_its_published_names() -> None:
    """A deployment hands over what it declared."""
    assert parameters(StepRunner) == "resources, node_resources=None, enable_nvtx=False"
    assert parameters(topo_sort) == "resources"


def test_properties_change_nothing() -> None:
    """What is read in each turn must not be set by accident."""
    for name in PROPERTIES:
        found = inspect.getattr_static(StepRunner, name)
        assert isinstance(found, property)
        assert found.fset is None


@pytest.mark.parametrize("name", [*METHODS, *PROPERTIES, "topo_sort"])
def test_each_is_pinned_by_a_test(name: str) -> None:
    """What no test asks for may change its meaning in silence."""
    named = [
        node
        for each in functions()
        for node in ast.walk(each)
        if (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.Name) and node.id == name)
    ]
    assert len(named) > 1


def test_each_test_says_why_its_rule_exists() -> None:
    """A rule without a reason is kept for ever, or dropped by the first who is in a hurry."""
    assert [each.name for each in functions() if not ast.get_docstring(each)] == []
