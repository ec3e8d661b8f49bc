"""One line of a jsonl file, judged alone: a JSON object (RFC 8259) that a table can hold, or a reason."""

from __future__ import annotations

import json
import math
from typing import Any

from treadle.storage.grid import Row

MAX_DEPTH = 64
"""Deeper nesting is refused: a row is data, and recursion over it must be bounded."""

_KINDS = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}
_INT64 = range(-(2**63), 2**63)


class BadLineError(ValueError):
    """Why a line is not a row, with the stable name of that kind of flaw."""

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = kind
        super().__init__(reason)


def parse_line(raw: bytes) -> Row:
    """The object on one line (no line break needed). Raises BadLineError with the reason."""
    if b"\0" in raw:
        raise BadLineError("nul", f"NUL byte at byte {raw.index(0) + 1}")
    row = _decode(_text(raw))
    if not isinstance(row, dict):
        raise BadLineError("not-an-object", f"expected a JSON object, found {json_kind(row)}")
    _check_depth(raw, row)
    _check_surrogates(raw, row)
    return row


def json_kind(value: object) -> str:
    """How JSON calls the kind of a value, for messages; by its Python type what JSON does not have."""
    return "null" if value is None else _KINDS.get(type(value), f"a Python {type(value).__qualname__}")


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadLineError(
            "not-utf8", f"not UTF-8: byte 0x{raw[error.start]:02x} at byte {error.start + 1}"
        ) from error


def _decode(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadLineError(
            "not-json", f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
        ) from error
    except RecursionError as error:
        raise BadLineError("too-deep", f"nested deeper than {MAX_DEPTH}") from error


def _check_depth(raw: bytes, row: object) -> None:
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    level = [row]
    for _ in range(MAX_DEPTH):
        level = [each for outer in level for each in _children(outer) if isinstance(each, (dict, list))]
        if not level:
            return
    raise BadLineError("too-deep", f"nested deeper than {MAX_DEPTH}")


def _children(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value


def _check_surrogates(raw: bytes, row: object) -> None:
    # A lone surrogate has no UTF-8 form, so no column can hold it, and only an escape can make one.
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadLineError(
            "surrogate", f"lone surrogate \\u{ord(error.object[error.start]):04x} in a string"
        ) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        raise BadLineError(
            "duplicate-key", f"duplicate key {next(name for name in names if names.count(name) > 1)!r}"
        )
    return row


def _integer(text: str) -> int:
    # 19 digits and a sign are the most that int64 can have; the length is checked first because
    # Python refuses to convert thousands of digits with an error of its own.
    if len(text) > 20 or (value := int(text)) not in _INT64:
        raise BadLineError("integer-range", f"integer {text[:40]} does not fit 64 bits")
    return value


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadLineError("number-range", f"number {text[:40]} is out of range")
    return value


def _constant(text: str) -> float:
    raise BadLineError("nan", f"{text} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_integer, parse_constant=_constant, strict=True
)
