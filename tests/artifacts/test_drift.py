"""A difference between two recipes is named by the path that a person would look for."""

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.artifacts import canonical
from treadle.artifacts.drift import FieldChange, dep_changes, describe_changes, differences, recipe_changes


class Act(Enum):
    RELU = 1
    GELU = 2


@dataclass(frozen=True)
class Config:
    lr: float = 0.1
    layers: tuple[int, ...] = (1, 2)
    act: Act = Act.RELU
    extra: Any = None


@dataclass(frozen=True)
class Other:
    lr: float = 0.1


def changes(old: Any, new: Any) -> list[str]:
    return [*map(str, differences(canonical(old), canonical(new)))]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"lr": 0.1}, {"lr": 0.2}, ["lr: 0.1 → 0.2"]),
        ({"a": {"lr": 1}}, {"a": {}}, ["a.lr: 1 → absent"]),
        ({"a": {}}, {"a": {"x y": 3}}, ["a['x y']: absent → 3"]),
        ({"a": [1, 2]}, {"a": [1, 3, 4]}, ["a[1]: 2 → 3", "a[2]: absent → 4"]),
        ({"c": Config()}, {"c": Config(lr=0.2, layers=(1, 5))}, ["c.layers[1]: 2 → 5", "c.lr: 0.1 → 0.2"]),
        (
            {"c": Config(act=Act.GELU)},
            {"c": Config(extra={1: "b"})},
            ["c.act: Act.GELU → Act.RELU", "c.extra: None → {1: 'b'}"],
        ),
        ({"c": Config(extra=(1,))}, {"c": Config(extra=[1])}, ["c.extra: (1,) → [1]"]),
        ({"c": Other()}, {"c": 2**70}, ["c: Other(lr=0.1) → 0x400000000000000000"]),
        ({1: "a", "1": 2}, {1: "b", "1": 2}, ["[1]: 'a' → 'b'"]),
        ({"n": 1}, {"n": 1.0}, ["n: 1 → 1.0"]),
        ({"n": 1}, {"n": True}, ["n: 1 → True"]),
        ({"s": {1}}, {"s": {1, 2}}, ["s: {1} → {1, 2}"]),
        ({"s": set()}, {"s": float("inf")}, ["s: set() → inf"]),
        ({"p": Path("a")}, {"p": "a"}, ["p: Path('a') → 'a'"]),
        ([1], [2], ["[0]: 1 → 2"]),
        (1, 2, ["value: 1 → 2"]),
    ],
)
def test_a_difference_has_a_path_and_both_values(old: Any, new: Any, expected: list[str]) -> None:
    assert sorted(changes(old, new)) == sorted(expected)


def test_arrays_and_bytes_differ_by_their_content() -> None:
    [array] = differences(canonical({"a": np.array([1, 2])}), canonical({"a": np.array([1, 3])}))
    assert array.path == "a"
    assert array.old != array.new
    assert array.old.startswith("array([('', '<i8')], [2], ")
    [text] = changes({"b": b"x"}, {"b": b"y"})
    assert text.startswith("b: 1 bytes ")


def test_long_values_are_cut_where_they_differ() -> None:
    """Cut at the front, two long values look alike."""
    [change] = differences(canonical({"t": "a" * 500 + "b" * 100}), canonical({"t": "a" * 500 + "c" * 100}))
    assert len(change.old) < 100
    assert change.old != change.new
    assert change.old.startswith("…aaa")


def test_dependencies_differ_by_name() -> None:
    old = ["words@2026.01.01", "gone-0123456789ab", "same@dev"]
    new = ["words@2026.02.01", "same@dev", "a/new-0123456789ab"]
    assert [*map(str, dep_changes(old, new))] == [
        "deps['a/new']: absent → a/new-0123456789ab",
        "deps.gone: gone-0123456789ab → absent",
        "deps.words: words@2026.01.01 → words@2026.02.01",
    ]
    assert dep_changes(old, old) == ()


def test_a_dependency_that_stands_among_the_arguments_is_named_once() -> None:
    old = {"dict": [["x", {"@step": "words-" + "1" * 64}]]}
    new = {"dict": [["x", {"@step": "words-" + "2" * 64}]]}
    ids = ["words-" + "1" * 12], ["words-" + "2" * 12]
    assert recipe_changes(old, new, *ids) == (FieldChange("x", *ids[0], *ids[1]),)  # type: ignore[arg-type]
    assert len(recipe_changes(old, old, *ids)) == 1  # type: ignore[arg-type]


def test_very_many_changes_are_a_short_line() -> None:
    found = differences(canonical([*range(1000)]), canonical([*range(1, 1001)]))
    assert len(found) == 1000
    assert describe_changes(found).endswith("; [9]: 9 → 10; and 990 more")


LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | st.text("ab", max_size=2)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("xy", min_size=1, max_size=2), inner, max_size=3)
        | st.builds(Config, extra=inner)
    ),
    max_leaves=10,
)


@given(TREES)
def test_equal_values_do_not_differ(value: Any) -> None:
    assert differences(canonical(value), canonical(value)) == ()


@given(TREES, st.data())
def test_any_single_change_is_found_at_its_path(value: Any, data: st.DataObject) -> None:
    changed, path = mutated(value, data)
    found = differences(canonical({"top": value}), canonical({"top": changed}))
    assert [each.path for each in found] == [f"top{path}"]


class Fresh(Enum):
    VALUE = "nothing that is drawn"


def mutated(value: Any, data: st.DataObject) -> tuple[Any, str]:
    """`value` with one leaf replaced, and the path to it."""
    if isinstance(value, Config):
        inner, path = mutated(value.extra, data)
        return replace(value, extra=inner), f".extra{path}"
    if not isinstance(value, list | tuple | dict) or not value:
        return Fresh.VALUE, ""
    keys: Any = [*value] if isinstance(value, dict) else [*range(len(value))]
    key = data.draw(st.sampled_from(keys))
    inner, path = mutated(value[key], data)
    if isinstance(value, dict):
        return {**value, key: inner}, f".{key}{path}"
    items = [inner if place == key else each for place, each in enumerate(value)]
    return type(value)(items), f"[{key}]{path}"
