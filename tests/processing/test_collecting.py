"""The threshold of the collector: higher while units are worked on, as it was when all are done."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from treadle.processing.collecting import OBJECTS, rare_collections


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_the_threshold_is_higher_inside_and_what_it_was_afterwards() -> None:
    with rare_collections():
        assert gc.get_threshold() == (OBJECTS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_it_is_what_it_was_after_an_error() -> None:
    with pytest.raises(KeyError), rare_collections():
        raise KeyError
    assert gc.get_threshold() == (700, 10, 10)


def test_the_last_of_blocks_that_overlap_brings_it_back() -> None:
    """Units on threads begin and end in any order."""
    one, two = rare_collections(), rare_collections()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert gc.get_threshold() == (OBJECTS, 10, 10)
    two.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (50_000, 5, 5)])
def test_a_choice_of_the_program_stands(chosen: tuple[int, int, int]) -> None:
    """Zero switches the collector off: the program has its reasons."""
    gc.set_threshold(*chosen)
    with rare_collections():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_a_choice_made_inside_stands() -> None:
    with rare_collections():
        gc.set_threshold(1000, 5, 5)
    assert gc.get_threshold() == (1000, 5, 5)
