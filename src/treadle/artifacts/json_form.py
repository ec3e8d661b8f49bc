"""The JSON that canonical forms are made of: its type, its text, and the names of types in it."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A tree that JSON can write."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def type_name(thing: Any) -> str:
    """`module.Class`, or `module.function`; in a script run as `__main__`, as if it were imported."""
    return f"{module_name(thing.__module__)}.{thing.__qualname__}"


def module_name(name: str) -> str:
    """The name of a module; that of a script run as `__main__` as if it were imported."""
    main = sys.modules.get("__main__")
    if name != "__main__" or main is None:
        return name
    if (spec := getattr(main, "__spec__", None)) is not None:
        return str(spec.name)
    return Path(getattr(main, "__file__", None) or "__main__").stem


def number_form(value: float) -> Json:
    """A number as JSON can write it: very long integers in hex, infinities and NaN by name."""
    if isinstance(value, int):  # Python refuses to write very long integers in decimal, but never in hex
        return int(value) if value.bit_length() < 64 else {"int": hex(value)}
    return float(value) if math.isfinite(value) else {"float": str(float(value))}


def json_text(tree: Json) -> str:
    """The tree as compact JSON in ASCII, keys sorted."""
    return _ENCODER.encode(tree)
