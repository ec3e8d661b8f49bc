"""Options of the form NAME=VALUE, shared by the commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from treadle.errors import ArgumentError

Given = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
"""The type of an option that may be given several times, by default not at all."""


def parse_params(params: Sequence[str], option: str = "--param") -> dict[str, str]:
    """("a=1", "b=x=y") -> {"a": "1", "b": "x=y"}; the manifest's types are applied later.

    Raises:
        ArgumentError: no `=`, no name, or a name that is given twice.
    """
    parsed: dict[str, str] = {}
    for param in params:
        name, equals, value = param.partition("=")
        if not (name and equals):
            raise ArgumentError(f"{option} {param!r}: expected NAME=VALUE")
        if name in parsed:
            raise ArgumentError(f"{option} {name}: given twice, as {parsed[name]!r} and as {value!r}")
        parsed[name] = value
    return parsed
