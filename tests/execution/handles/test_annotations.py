"""What annotations say of parameters: which bear no identity, and which take the context."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from treadle import Runtime, StepContext, run, step
from treadle.errors import ArgumentError


@step
def with_workers(x: int, workers: Runtime[int] | None = None) -> int:
    return x


def test_an_optional_runtime_argument_bears_no_identity() -> None:
    """`Runtime[int] | None` is how an optional one is written; else each number of workers computes it all
    anew.
    """
    assert with_workers(1, workers=1).hash_id == with_workers(1, workers=2).hash_id


def late(
    x: int,
    a: "Runtime[int] | None" = None,
    b: "typing.Optional[treadle.Runtime[int]]" = None,  # type: ignore[name-defined]  # noqa: F821
    ctx: "StepContext | None" = None,
    other: "dict[str, int] | None" = None,
) -> bool:
    return ctx is not None


def test_optional_kinds_are_seen_in_annotations_that_cannot_be_evaluated(tmp_path: Path) -> None:
    """One name that only a type checker knows leaves all annotations as texts."""
    made = [step(late)(1, a=1, b=1), step(late)(1, a=2, b=2), step(late)(1, other={})]
    assert made[0].hash_id == made[1].hash_id != made[2].hash_id
    assert run(made[0], prefix=tmp_path)[made[0].id]


@step
def with_self(self: int, where: int) -> int:
    return self + where


def test_parameters_may_have_any_name(tmp_path: Path) -> None:
    handle = with_self(self=1, where=2)
    assert run(handle, prefix=tmp_path)[handle.id] == 3


@step
def with_context(x: int, ctx: StepContext | None = None) -> bool:
    return ctx is not None


def test_an_optional_context_is_filled_in(tmp_path: Path) -> None:
    """Functions that are called without treadle too have `ctx: StepContext | None = None`."""
    handle = with_context(1)
    assert run(handle, prefix=tmp_path)[handle.id]


@step
def number(n: int) -> int:
    return n


def test_no_step_reaches_a_function_as_a_step(tmp_path: Path) -> None:
    """A step inside a Runtime argument is refused, however deep: its value could not be put there."""
    with pytest.raises(ArgumentError, match="Runtime argument extra"):
        run(with_mapping(1, extra=OrderedDict(a=number(1))), prefix=tmp_path)


@step
def with_mapping(x: int, extra: Runtime[Any] = None) -> str:
    return type(extra["a"]).__name__
