"""Values as YAML text that the strict reader of this room reads back as the same values."""

from __future__ import annotations

import json
import math
import re

from treadle.manifest.places import PlainValue, ScalarValue
from treadle.manifest.scalars import write_word
from treadle.manifest.source import UNPRINTABLE

# Words that cannot be taken for anything else, in a flow or outside of one.
_WORD = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+-]*")
# Booleans elsewhere, though not in this language.
_DOUBTFUL = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_BREAKS = re.compile("[\x85\u2028\u2029]")
_LONGEST_DECIMAL = 10**999  # a longer one is read as text; see scalars


def write_flow(value: PlainValue) -> str:
    """The value on one line: a word, a number, `[a, b]` or `{a: b}`."""
    match value:
        case tuple():
            return f"[{', '.join(write_flow(each) for each in value)}]"
        case dict():
            return (
                f"{{{', '.join(f'{write_key(name)}: {write_flow(each)}' for name, each in value.items())}}}"
            )
        case _:
            return _scalar(value)


def write_key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _WORD.fullmatch(name) and name.lower() not in _DOUBTFUL else _quoted(name)


def _scalar(value: ScalarValue) -> str:
    if isinstance(value, str):
        return write_key(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
    if isinstance(value, int) and not isinstance(value, bool) and value >= _LONGEST_DECIMAL:
        return hex(value)
    return write_word(value)


def _quoted(text: str) -> str:
    """In double quotes; a JSON string is a YAML one, but for what YAML calls a line break or unprintable."""
    escaped = json.dumps(text, ensure_ascii=False)
    return UNPRINTABLE.sub(_escape, _BREAKS.sub(_escape, escaped))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
