"""A name is given once, and an unknown name lists the known."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import ArgumentError, UnknownNameError
from treadle.kernel import Registry


@given(st.dictionaries(st.text(min_size=1), st.integers()))
def test_what_was_registered_is_found_and_listed_in_order(things: dict[str, int]) -> None:
    registry: Registry[int] = Registry("number")
    for name, thing in things.items():
        registry.register(name, thing)
    assert registry.names() == tuple(sorted(things))
    assert all(name in registry and registry.get(name) == thing for name, thing in things.items())


def test_an_unknown_name_lists_the_known_and_the_nearest() -> None:
    registry: Registry[object] = Registry("run type")
    registry.register("partition", object())
    registry.register("mapping", object())
    with pytest.raises(UnknownNameError) as caught:
        registry.get("partitoin")
    assert str(caught.value) == (
        "unknown run type 'partitoin'; did you mean 'partition'? (known: mapping, partition)"
    )


def test_a_name_is_not_given_twice_to_different_things() -> None:
    """The last one winning in silence is how plugins break each other."""
    registry: Registry[object] = Registry("format")
    first = registry.register("jsonl", object())
    registry.register("jsonl", first)
    with pytest.raises(ArgumentError, match="format 'jsonl' is already registered"):
        registry.register("jsonl", object())
    assert registry.get("jsonl") is first


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match="not empty"):
        Registry[int]("format").register("", 1)


def test_a_deferred_thing_is_loaded_when_it_is_first_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    registry: Registry[object] = Registry("poem")
    registry.defer("zen", "this", "d")
    assert registry.names() == ("zen",)
    assert "this" not in sys.modules
    found = registry.get("zen")
    assert found is registry.get("zen") is sys.modules["this"].d
    assert registry.register("zen", found) is found


def test_the_name_of_a_deferred_thing_is_taken() -> None:
    registry: Registry[object] = Registry("function")
    registry.defer("exists", "os.path", "exists")
    with pytest.raises(ArgumentError, match="function 'exists' is already registered as <function exists"):
        registry.register("exists", object())
