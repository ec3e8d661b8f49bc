"""The JSON that canonical forms are made of: its type, its text, and the names of types in it."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias

from treadle.artifacts.script import module_name

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A tree that JSON can write."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def type_name(thing: Any) -> str:
    """`module.Class`, or `module.function`; in a script run as `__main__`, as if it were imported."""
    return f"{module_name(thing.__module__)}.{thing.__qualname__}"


def number_form(value: float) -> Json:
    """A number as JSON can write it: very long integers in hex, infinities and NaN by name."""
    if isinstance(value, int):  # Python refuses to write very long integers in decimal, but never in hex
        return int(value) if value.bit_length() < 64 else {"int": hex(value)}
    return float(value) if math.isfinite(value) else {"float": str(float(value))}


def json_text(tree: Json) -> str:
    """The tree as compact JSON in ASCII, keys sorted."""
    return _ENCODER.encode(tree)
