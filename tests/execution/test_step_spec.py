"""A step's identity and place follow from what it is, not from where or when it was made."""

import copy
import pickle
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from treadle.errors import ArgumentError, FingerprintMismatchError, GraphError, IdentityError
from treadle.execution import StepSpec, step
from treadle.execution.handles.remote import remote
from treadle.fray import ResourceConfig


def noop(path: str) -> None:
    """Do nothing."""


def spec(name: str = "a", **options: Any) -> StepSpec:
    return StepSpec(name, noop, **{"output_path_prefix": "/store", **options})


def test_the_place_is_made_of_store_name_and_identity() -> None:
    step = spec("corpus/tokens", hash_attrs={"n": 1})
    assert step.output_path == f"/store/corpus/tokens/{step.hash_id}"
    assert step.id == f"corpus/tokens-{step.hash_id[:12]}"
    assert len(step.hash_id) == 64


def test_the_store_is_no_part_of_the_identity() -> None:
    assert spec(output_path_prefix="/x").id == spec(output_path_prefix="/y").id
    assert spec(override_output_path="fixed").id == spec().id
    assert spec(output_path_prefix="/x") != spec(output_path_prefix="/y")


def test_name_attributes_and_dependencies_are_part_of_the_identity() -> None:
    a, b = spec("a"), spec("b")
    different = [a, b, spec("c"), spec("c", deps=[a]), spec("c", deps=[b]), spec("c", deps=[a, b]),
                 spec("c", hash_attrs={"n": 1}), spec("c", hash_attrs={"n": "1"})]  # fmt: skip
    assert len({each.hash_id for each in different}) == len(different)
    assert spec("c", deps=[a, b]).id == spec("c", deps=[b, a, b]).id
    assert spec("c", deps=[a, b]) == spec("c", deps=[a, b])
    assert len({spec("c"), spec("c")}) == 1


def test_dependencies_given_by_a_generator_are_listed_once() -> None:
    deps = [spec(f"d{n}") for n in range(500)]
    step = spec("sum", deps=(each for each in deps))
    assert step.dep_ids == step.dep_ids == tuple(each.id for each in deps)


def test_changing_the_attributes_afterwards_changes_nothing() -> None:
    attributes = {"n": 1}
    step = spec(hash_attrs=attributes)
    before = step.hash_id
    attributes["n"] = 2
    assert step.hash_id == before == spec(hash_attrs={"n": 1}).hash_id


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "a//b", "..", "a/../b", "a/./b", "a b", "a\n", "é", None, 3]
)
def test_names_that_could_leave_the_store_are_refused(name: Any) -> None:
    with pytest.raises(ArgumentError, match="step name"):
        spec(name)


@pytest.mark.parametrize("path", ["..", "a/../../b", "/x/../y", ""])
def test_places_outside_the_store_are_refused(path: str) -> None:
    with pytest.raises(ArgumentError, match="override_output_path"):
        spec(override_output_path=path)


def test_an_override_is_inside_the_store_or_absolute() -> None:
    assert spec(override_output_path="x/y").output_path == "/store/x/y"
    assert spec(override_output_path="/x/y").output_path == "/x/y"


@pytest.mark.parametrize("deps", ["abc", 3, [3], [None]])
def test_dependencies_that_are_no_steps_are_refused(deps: Any) -> None:
    with pytest.raises(ArgumentError, match="deps"):
        spec(deps=deps)


def test_a_step_needs_a_function_and_plain_attributes() -> None:
    with pytest.raises(ArgumentError, match=r"step 'a': fn: expected a function.*got None"):
        StepSpec("a", None)
    with pytest.raises(IdentityError, match=r"step 'a': hash_attrs\['f'\]"):
        spec(hash_attrs={"f": noop})


def test_printing_a_deep_chain_is_short() -> None:
    step = spec()
    for place in range(2000):
        step = spec(f"s{place}", deps=[step])
    assert len(repr(step)) < 500


def test_the_store_is_found_when_none_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_PREFIX", str(tmp_path))
    assert StepSpec("a", noop).output_path.startswith(f"{tmp_path}/a/")


@pytest.mark.parametrize("path", ["/", "/store", "/some", "/some/store"])
def test_a_place_that_holds_the_store_is_refused(path: str) -> None:
    """A step begins in an empty folder, so it would clear every other one."""
    with pytest.raises(ArgumentError, match="which holds the store"):
        spec(override_output_path=path, output_path_prefix="/store" if path == "/store" else "/some/store")


def test_a_version_is_the_place_and_stands_for_the_recipe() -> None:
    old, new = (
        spec(version="2026.02.03", hash_attrs={"n": 1}),
        spec(version="2026.02.03", hash_attrs={"n": 2}),
    )
    assert old.id == new.id == "a@2026.02.03"
    assert old.output_path == new.output_path == "/store/a/2026.02.03"
    assert old.hash_id != new.hash_id
    assert old != new
    assert spec("b", deps=[old]).hash_id == spec("b", deps=[new]).hash_id != spec("b", deps=[spec()]).hash_id
    assert spec("b", deps=[old]).hash_id != spec("b", deps=[spec(version="2026.02.04")]).hash_id
    assert spec(version="dev").hash_id == spec().hash_id


def test_a_fixed_version_on_a_dev_one_is_refused() -> None:
    dev = spec("raw", version="dev")
    with pytest.raises(
        GraphError, match=r"a@2026.02.03 has a fixed version and depends on raw@dev, .* give raw"
    ):
        spec(version="2026.02.03", deps=[dev])
    with pytest.raises(GraphError, match=r"a@2026.02.03 .* raw@dev \(through mid-[0-9a-f]{12}\)"):
        spec(version="2026.02.03", deps=[spec("mid", deps=[dev])])


def test_another_recipe_than_was_expected_is_refused() -> None:
    expected = spec(hash_attrs={"n": 1}).hash_id
    assert spec(hash_attrs={"n": 1}, expected_fingerprint=expected[:12]).hash_id == expected
    with pytest.raises(
        FingerprintMismatchError, match=f"step a-.*: expected the fingerprint {expected}, got"
    ) as caught:
        spec(hash_attrs={"n": 2}, expected_fingerprint=expected)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.step_id, again.expected, again.found) == (
        f"a-{caught.value.found[:12]}", expected, caught.value.found,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}, {"timeout": "1"}, {"timeout": True},
        {"timeout": float("inf")}, {"retry": 3}, {"resources": 2}, {"version": "2026.02.30"}, {"version": 1},
        {"expected_fingerprint": "abc"}, {"expected_fingerprint": 3},
    ],
)  # fmt: skip
def test_wrong_options_are_refused_by_name(options: dict[str, Any]) -> None:
    [name] = options
    with pytest.raises(ArgumentError, match=f"step 'a': {name}: expected"):
        spec(**options)


def test_a_store_may_be_a_url() -> None:
    step = spec("b/c", output_path_prefix="s3://bucket/x")
    assert step.output_path == f"s3://bucket/x/b/c/{step.hash_id}"
    assert spec(output_path_prefix="memory://x", version="dev").output_path == "memory://x/a/dev"
    assert spec(output_path_prefix="s3://b/x", override_output_path="y//z/").output_path == "s3://b/x/y/z"
    assert spec(override_output_path="s3://b/x/./y").output_path == "s3://b/x/y"
    with pytest.raises(ArgumentError, match="which holds the store"):
        spec(output_path_prefix="s3://b/x", override_output_path="s3://b")


def test_a_step_with_a_source_needs_no_function() -> None:
    assert spec_of(None, source="/data").source == "/data"


def test_a_function_can_say_what_its_job_needs() -> None:
    wanted, other = ResourceConfig(cpu=3), ResourceConfig(cpu=4)
    marked = remote(noop, resources=wanted)
    step = spec_of(marked)
    assert (step.resources, step.fn) == (wanted, noop)
    assert spec_of(marked, resources=other).resources == other
    for wrong in [(3, wanted), (noop, 3)]:
        with pytest.raises(ArgumentError, match="remote: "):
            remote(wrong[0], resources=wrong[1])  # type: ignore[arg-type]


def spec_of(fn: Any, **options: Any) -> StepSpec:
    return StepSpec("a", fn, output_path_prefix="/store", **options)


def test_a_copy_with_a_change_is_a_step_of_its_own() -> None:
    step = spec(hash_attrs={"n": 1}, deps=[spec("b")])
    assert replace(step, version="dev").id == "a@dev"
    assert replace(step, version="dev").hash_id == step.hash_id


def test_a_deep_chain_can_be_copied_sent_and_dropped() -> None:
    """Each of them goes from step to step of its own, and would end at some depth."""
    step = spec("s")
    for _ in range(20_000):
        step = spec("s", deps=[step])
    assert copy.deepcopy(step) is copy.copy(step) is step
    again = pickle.loads(pickle.dumps(step))
    assert again == step
    assert again.deps[0].deps[0] == step.deps[0].deps[0]
    assert (again.config, again.dep_ids, hash(again)) == (step.config, step.dep_ids, hash(step))
    del step, again


def test_shared_dependencies_stay_shared_when_they_are_sent() -> None:
    root = spec("root")
    again = pickle.loads(pickle.dumps(spec(deps=[spec("b", deps=[root]), spec("c", deps=[root])])))
    assert again.deps[0].deps[0] is again.deps[1].deps[0]


def make_items(path: str) -> Iterator[int]:
    yield 1


async def make_later(path: str) -> int:
    return 1


async def make_items_later(path: str) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("fn", [make_items, make_later, make_items_later, partial(make_items)])
def test_a_function_whose_call_runs_nothing_is_refused(fn: Any) -> None:
    """Found out when it runs, it has cost the steps before it, and its body never began."""
    with pytest.raises(ArgumentError, match="step 'a': fn: expected an ordinary function"):
        StepSpec("a", fn, output_path_prefix="/store")
    if fn in (make_items, make_later):
        with pytest.raises(ArgumentError, match=f"step {fn.__qualname__}: expected an ordinary function"):
            step(fn)
