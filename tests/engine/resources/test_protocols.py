"""The abilities of a resource, and the pages that list them."""

import inspect
from pathlib import Path

import pytest

from treadle.engine.resources import StepRunner, protocols
from treadle.engine.resources.resource import ReservesNothing

PAGE = (Path(__file__).parents[3] / "docs" / "engine-resources.md").read_text()
ABILITIES = {
    name: each
    for name, each in vars(protocols).items()
    if inspect.isclass(each) and each.__module__ == protocols.__name__ and hasattr(each, "_is_protocol")
}


def test_there_are_abilities() -> None:
    """What follows would else be true of nothing."""
    assert len(ABILITIES) > 10


@pytest.mark.parametrize("name", ABILITIES)
def test_an_ability_is_listed_with_its_methods(name: str) -> None:
    """A plug-in author finds on one page what a resource may do; the module's first lines say it in short."""
    own = [each for each in vars(ABILITIES[name]) if not each.startswith("_")]
    assert own
    assert f"`{name}`" in PAGE
    assert all(f"`{each}`" in PAGE for each in own)
    assert f"\n    {name} " in (protocols.__doc__ or "")


@pytest.mark.parametrize("name", ABILITIES)
def test_a_resource_without_it_is_told_from_one_with_it(name: str) -> None:
    """The runner settles once who can do what, by the methods alone."""
    own = {each: lambda self: None for each in dir(ABILITIES[name]) if not each.startswith("_")}
    able = type("Able", (ReservesNothing,), own)
    assert isinstance(able(), ABILITIES[name])
    assert not isinstance(ReservesNothing(), ABILITIES[name])


FACE = (
    *("admit", "admit_retrieve", "adopt_cached_prefix", "apply_cached_prefix"),
    *("build_accelerator_graph_buffers", "clear_preplan", "commit", "complete_cached_walk"),
    *("extend_prefix_chains", "extend_prefix_chains_batch", "ingest_capture_row", "ingest_request"),
    *("lease_cached_prefix", "order", "page_trails", "plan", "pre_admit", "pre_plan", "prefix_chain_keys"),
    *("publish", "publish_after_stop", "publish_from_snapshots", "publish_snapshot"),
    *("release_cached_prefix", "remove_request", "resolve_cached_prefix", "resources", "rollback_admit"),
    *("staged", "check_integrity", "keys_of", "meter"),
)


def test_the_runner_has_the_methods_of_its_page_and_no_others() -> None:
    """Each more is one more to know; each less is a resource that cannot be driven."""
    assert sorted(each for each in vars(StepRunner) if not each.startswith("_")) == sorted(FACE)
