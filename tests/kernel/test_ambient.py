"""An ambient value holds for a block and for the work started in it, and for nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import UsageError
from treadle.kernel import Ambient, carry

colour: Ambient[str] = Ambient("colour", hint="Set one with `colour.use(...)`.")


def test_an_unset_value_explains_itself() -> None:
    with pytest.raises(UsageError, match=r"no colour is set here\. Set one with `colour\.use\(\.\.\.\)`\."):
        colour.get()


@given(st.recursive(st.text(min_size=1), lambda inner: st.lists(inner, max_size=3)))
def test_blocks_nest_and_restore(tree: object) -> None:
    def walk(node: object) -> None:
        before = colour.get() if colour.is_set else None
        if isinstance(node, list):
            for child in node:
                walk(child)
        else:
            with colour.use(str(node)):
                assert colour.get() == node
        assert (colour.get() if colour.is_set else None) == before

    walk(tree)
    assert not colour.is_set


def test_the_former_value_returns_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), colour.use("red"):
        _ = 1 / 0
    assert not colour.is_set


@dataclass(frozen=True)
class FrozenError(Exception):
    shard: int


def test_a_frozen_exception_passes_through() -> None:
    """It takes no attributes, so `contextmanager` would raise another one in its place."""
    with pytest.raises(FrozenError), colour.use("red"):
        raise FrozenError(1)
    assert not colour.is_set


def test_carried_work_sees_the_callers_value_in_a_pool() -> None:
    """Pool threads do not inherit context variables, and one context cannot be entered twice at once."""
    meet = threading.Barrier(2)

    def seen() -> str:
        meet.wait(timeout=10)
        return colour.get()

    with ThreadPoolExecutor(2) as pool, colour.use("red"):
        one = carry(seen)
        with colour.use("blue"):
            futures = [pool.submit(one), pool.submit(carry(seen))]
        assert [each.result() for each in futures] == ["red", "blue"]
        meet = threading.Barrier(2)
        twice = [pool.submit(one), pool.submit(one)]
        assert [each.result() for each in twice] == ["red", "red"]


def test_what_carried_work_sets_stays_with_it() -> None:
    with colour.use("red"):
        carry(lambda: colour._variable.set("green"))()
        assert colour.get() == "red"
