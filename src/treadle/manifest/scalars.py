"""What an unquoted word of YAML means, by the strict rules of this language.

Only `true` and `false` are booleans, so `no`, `on` and country codes stay text. Numbers are those of the
YAML 1.2 core schema without leading zeros: `1e-3` is a number, `007`, `1_000` and `12:30` are text.
Dates are text. Words of the command line are read by the same rules.
"""

from __future__ import annotations

import re

from treadle.manifest.places import ScalarValue

_WORDS: dict[str, ScalarValue] = {"": None, "~": None, "null": None, "true": True, "false": False}
# CPython refuses to read or to write a decimal of more than 4,300 digits; such a word is no whole number.
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,999})")
_PREFIXED = re.compile(r"0x[0-9a-fA-F]{1,1000}|0o[0-7]{1,1000}")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)?\.[0-9]+|(?:0|[1-9][0-9]*)\.?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.inf|\.nan")


def read_word(word: str) -> ScalarValue:
    """The value of an unquoted word: null, a boolean, a number, or the word itself."""
    if word in _WORDS:
        return _WORDS[word]
    if _DECIMAL.fullmatch(word):
        return int(word)
    if _PREFIXED.fullmatch(word):
        return int(word, base=0)
    if _FLOAT.fullmatch(word):
        return float(word)
    if _SPECIAL.fullmatch(word):
        return float(word.replace(".", "", 1))
    return word


def write_word(value: ScalarValue) -> str:
    """The text of a value inside a longer text, as a manifest would spell it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
