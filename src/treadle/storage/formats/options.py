"""The options of a format, checked strictly against its dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

import pydantic
import pydantic_core

from treadle.errors import ArgumentError, nearest

T = TypeVar("T")


def parse_options(backend: str, options: type[T], given: Mapping[str, object]) -> T:
    """`given` as an `options`, a frozen dataclass.

    Raises ArgumentError for an option that is unknown (the message lists the known and the nearest), or has
    a value of another type or out of range.
    """
    known = [each.name for each in dataclasses.fields(options)]  # type: ignore[arg-type]
    refuse_unknown(backend, known, given)
    try:
        # Through JSON, since strict mode would refuse a tuple, which a list of the manifest is, for a list.
        return pydantic.TypeAdapter(options).validate_json(pydantic_core.to_json(dict(given)), strict=True)
    except pydantic.ValidationError as error:
        raise ArgumentError("; ".join(_said(backend, each) for each in error.errors())) from error


def refuse_unknown(backend: str, known: list[str], given: Mapping[str, object]) -> None:
    """ArgumentError for the first option that is not among the known ones."""
    for name in given:
        if name not in known:
            guess = nearest(name, known)
            hint = f"; did you mean {guess!r}?" if guess else ""
            expected = f"one of {', '.join(known)}" if known else "no option"
            raise ArgumentError(f"option {name!r} of the format {backend}: expected {expected}{hint}")


def _said(backend: str, error: pydantic_core.ErrorDetails) -> str:
    if error["type"] == "value_error":  # from the dataclass itself
        return f"the format {backend}: {error['ctx']['error']}"
    place = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"option {place!r} of the format {backend}: expected a value, got nothing"
    what = error["msg"].removeprefix("Input should be ")
    return f"option {place!r} of the format {backend}: expected {what}, got {error['input']!r}"
