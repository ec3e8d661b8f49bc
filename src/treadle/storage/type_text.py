"""Arrow types from their text, as `str` gives it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def parse_type(text: str) -> pa.DataType | None:
    """The type whose text it is; None for one that is not understood, as a map, or odd names of fields."""
    parsed = _parsed(text)
    return parsed if parsed is not None and str(parsed) == text else None


def _parsed(text: str) -> pa.DataType | None:
    kind, mark, inside = text.partition("<")
    if not mark or not inside.endswith(">"):
        return _simple(text)
    fields = [_field(each) for each in _split(inside[:-1])]
    known = [each for each in fields if each is not None]
    if len(known) < len(fields):
        return None
    if kind == "struct":
        return pa.struct(known)
    if kind not in ("list", "large_list") or len(known) != 1:
        return None
    return pa.list_(known[0]) if kind == "list" else pa.large_list(known[0])


def _simple(text: str) -> pa.DataType | None:
    try:
        return pa.type_for_alias(text)  # type: ignore[call-overload, no-any-return]  # unknown texts raise
    except ValueError:
        return None


def _field(text: str) -> pa.Field[Any] | None:
    name, _, kind = text.partition(": ")
    parsed = _parsed(kind.removesuffix(" not null"))
    return None if parsed is None else pa.field(name, parsed, not kind.endswith(" not null"))


def _split(text: str) -> list[str]:
    """The fields of a struct: separated by commas that are not inside of a type."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "<[(") - (sign in ">])")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [each.strip() for each in parts if each.strip()]
