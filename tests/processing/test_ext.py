"""What the author of a plugin sees."""

from __future__ import annotations

import pytest

from treadle import ext
from treadle.errors import ArgumentError, UnknownNameError
from treadle.processing.runners import get_pattern_runner, known_patterns


def test_the_names_are_those_listed() -> None:
    """A plugin must be able to rely on this list, and on nothing beside it."""
    public = {name for name in vars(ext) if not name.startswith("_")}
    assert public == set(ext.__all__)
    assert len(ext.__all__) == len(set(ext.__all__))


def test_the_run_types_of_the_package_are_known() -> None:
    assert {"cluster", "embed_train", "generate", "mapping", "partition", "reduce"} <= set(known_patterns())
    with pytest.raises(UnknownNameError, match="did you mean 'mapping'"):
        get_pattern_runner("maping")


def test_a_run_type_of_the_package_cannot_be_replaced() -> None:
    """A manifest must mean the same on every machine."""
    with pytest.raises(ArgumentError, match="'partition' is already registered"):
        ext.register_pattern_runner("partition", lambda job: ext.Counters())
