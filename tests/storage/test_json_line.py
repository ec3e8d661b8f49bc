from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.storage.json_line import MAX_DEPTH, BadLineError, parse_line

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=12)


@given(st.dictionaries(texts, values), st.booleans())
def test_every_json_object_is_read_as_the_standard_library_reads_it(
    row: dict[str, Any], ascii_only: bool
) -> None:
    """Strictness must cost no valid row, however odd its text: escapes, NUL as an escape, emoji, line
    separators.
    """
    assert parse_line(json.dumps(row, ensure_ascii=ascii_only).encode()) == row


@given(st.binary(max_size=60))
def test_any_bytes_are_a_row_or_have_a_reason(raw: bytes) -> None:
    """One bad line costs one row, so nothing but a reason may come out of a line."""
    with suppress(BadLineError):
        assert isinstance(parse_line(raw), dict)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a": "\xff"}', "not UTF-8: byte 0xff at byte 8"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a": 1', "not JSON: Expecting ',' delimiter at character 8"),
        (b'{"a": 1} {"a": 2}', "not JSON: Extra data at character 10"),
        (b"[1, 2]", "expected a JSON object, found an array"),
        (b"null", "expected a JSON object, found null"),
        (b"true", "expected a JSON object, found a boolean"),
        (b'{"a": "x\0y"}', "NUL byte at byte 9"),
        (b'{"a": "\\ud83d"}', "lone surrogate \\ud83d in a string"),
        (b'{"\\uD83D": 1}', "lone surrogate \\ud83d in a string"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": 1e999}', "number 1e999 is out of range"),
        (b'{"a": 9223372036854775808}', "integer 9223372036854775808 does not fit 64 bits"),
        (b'{"a": -9223372036854775809}', "does not fit 64 bits"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "does not fit 64 bits"),
        (b'{"a": {"b": 1, "b": 1}}', "duplicate key 'b'"),
        (b'{"a": "x\ty"}', "not JSON: Invalid control character"),
        (b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", "nested deeper than 64"),
        (b'{"a": ' + b"[" * 200_000, "nested deeper than 64"),
    ],
)
def test_a_line_that_is_no_row_says_why(raw: bytes, reason: str) -> None:
    """Readers of other tools turn these into nulls, infinities or other text; here each is named."""
    with pytest.raises(BadLineError) as caught:
        parse_line(raw)
    assert reason in str(caught.value)


def test_what_only_looks_bad_is_a_row() -> None:
    """Pairs of surrogates are a character, brackets in a text are no nesting, and int64 has two ends."""
    assert parse_line(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
    assert parse_line(b'{"a": "\\u0000"}') == {"a": "\0"}
    assert parse_line(json.dumps({"a": "[" * 500}).encode()) == {"a": "[" * 500}
    assert parse_line(b'{"a": [-9223372036854775808, 9223372036854775807]}')["a"] == [-(2**63), 2**63 - 1]
    deepest = b'{"a": ' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}"
    assert parse_line(deepest)
