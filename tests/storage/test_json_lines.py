"""The fast parser must say of every line exactly what the strict one says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from treadle.storage import json_lines
from treadle.storage.grid import Row
from treadle.storage.json_line import BadLineError, parse_line
from treadle.storage.json_lines import parse_lines

Verdict = tuple[str, Any]


def strict(raw: bytes) -> Verdict:
    """The verdict of the strict parser, with every type and every sign of zero in it."""
    if not raw.strip():
        return ("blank", None)
    try:
        return ("row", repr(parse_line(raw.removesuffix(b"\n"))))
    except BadLineError as error:
        return (error.kind, str(error))


def fast(raws: list[bytes]) -> list[Verdict]:
    parsed = parse_lines(raws)
    found: dict[int, Verdict] = {at: (flaw.kind, str(flaw)) for at, flaw in parsed.flaws.items()}
    assert not found.keys() & set(parsed.places)
    found |= {at: ("row", repr(row)) for at, row in zip(parsed.places, parsed.rows, strict=True)}
    return [found.get(index, ("blank", None)) for index in range(len(raws))]


# What a JSON text is made of, and what the proofs look for, in any order: most is not JSON, much nearly so.
SYNTAX = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    '"a"',
    '"a":',
    '"b":',
    '"a" :',
    "\\",
    '\\"',
    "true",
    "null",
    "x",
    "!",
]
TEXTS = ['"\\":"', '":"', '"x\\\\":', '"\\u0061":', "\\u0061", "\\ud83d", "\\ude00", "é", "😀"]
NUMBERS = ["1", "-0", "-0.0", "1.5", "1e400", "1e-400", "NaN", ".", str(2**64), f"{2**63}.0"]
EDGES = [str(sign * 2**63 + one) for sign in (-1, 1) for one in (-1, 0)]
BYTES = [" ", "\t", "\r", "\n", "\0", "\x0b", "\x7f"]
atoms = st.sampled_from([*SYNTAX, *TEXTS, *NUMBERS, *EDGES, *BYTES])
near_json = st.lists(atoms, max_size=14).map(lambda parts: "".join(parts).encode())

keys = st.sampled_from(["a", "b", "", ":", '"', "a\\", '":', " :", "é"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=3
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 1e300, -0.0, 0.0])
    | keys
)


class Twice:
    """An object as pairs, so that a key may come twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(keys, inner), max_size=3).map(lambda each: Twice(each))
    ),
    max_leaves=10,
)
objects = st.lists(st.tuples(keys, values), max_size=5).map(lambda each: Twice(each))
spaces = st.sampled_from(["", "", "", " ", "  ", "\t", "\r"])


@st.composite
def lines_of_json(draw: st.DrawFn) -> bytes:
    """An object with all spellings that JSON knows: white space, escapes, keys that come twice."""

    def spell(value: Any) -> str:
        gap = draw(spaces)
        if isinstance(value, Twice):
            pairs = (f"{gap}{spell(key)}{gap}:{draw(spaces)}{spell(inner)}" for key, inner in value.pairs)
            return "{" + f"{gap},".join(pairs) + gap + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(spell, value)) + gap + "]"
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    return spell(draw(objects)).encode("utf-8", "surrogatepass")


@settings(max_examples=200)
@given(st.lists(near_json | lines_of_json() | st.binary(max_size=20), max_size=6), st.booleans())
@example([b'{"a":1}', b'{"a":1,"a":1}', b'{"a":2}'], True)
@example([b'{"a":":)"}', b'{"a":"\\":","b":1}', b'{"a":" \\" :"}', b'{"a\\\\":1,"a\\\\":2}'], True)
@example([b'{"a":1}\0', b'{"a":-0}', b'{"a":-0.0}', b'\xef\xbb\xbf{"a":1}', b"", b"\x0c"], False)
def test_many_lines_together_get_the_verdicts_that_each_gets_alone(raws: list[bytes], ended: bool) -> None:
    """Value, types, refusal and its reason; next to any other lines."""
    lines = [raw.replace(b"\n", b" ") + b"\n" * ended for raw in raws]
    assert fast(lines) == [strict(line) for line in lines]


@settings(max_examples=150)
@given(st.lists(lines_of_json(), min_size=1, max_size=4))
def test_lines_of_objects_get_the_same_verdicts(raws: list[bytes]) -> None:
    """Here all is JSON, so that keys that come twice, numbers and depth decide."""
    assert fast(raws) == [strict(raw) for raw in raws]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-25, 25), st.integers(1, 10**25))
def test_fractions_are_read_to_the_last_bit(value: float, power: int, digits: int) -> None:
    """Two parsers that round differently would give two outputs for one input."""
    raws = [
        b'{"a": %s}' % each for each in (repr(value).encode(), b"%de%d" % (digits, power), b"0.%d" % digits)
    ]
    assert fast(raws) == [strict(raw) for raw in raws]


@pytest.mark.parametrize("depth", [60, 63, 64, 65, 300, 1000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_is_judged_as_by_the_strict_parser(depth: int, opening: bytes, closing: bytes) -> None:
    raws = [
        b'{"a": ' + opening * depth + b"1" + closing * depth + b"}",
        b'{"a": ' + opening * depth,
        b'{"a": []}',
    ]
    assert fast(raws) == [strict(raw) for raw in raws]


def test_plain_rows_are_not_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof must hold for common text, colons and quotes in it too, or the fast path is none."""

    def refuse(raw: bytes) -> None:
        raise AssertionError(f"read again: {raw!r}")

    monkeypatch.setattr(json_lines, "parse_line", refuse)
    texts = ['say "so": yes', "deux : trois", "12:30", "C:\\", "a\\\\:", "\u2028:"]
    rows = [
        {"id": index, "text": text, "score": 0.5 * index, "tags": [{"k": text}], "none": None}
        for index, text in enumerate(texts * 50)
    ]
    assert parse_lines([json.dumps(row).encode() for row in rows]).rows == rows


def test_only_the_line_in_doubt_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def counting(raw: bytes) -> Row:
        read.append(raw)
        return parse_line(raw)

    monkeypatch.setattr(json_lines, "parse_line", counting)
    raws = [b'{"a": %d}' % n for n in range(3000)]
    raws[1500] = b'{"a": 1, "a": 2}'
    raws[2500] = b'{"a": 9223372036854775808}'
    parsed = parse_lines(raws)
    assert read == [raws[1500], raws[2500]]
    assert sorted(parsed.flaws) == [1500, 2500]
    assert len(parsed.rows) == 2998
