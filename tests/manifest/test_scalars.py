"""What an unquoted word means: the traps of YAML 1.1 stay shut."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.manifest.scalars import read_word, write_word


@pytest.mark.parametrize("word", ["no", "NO", "yes", "on", "off", "y", "n", "True", "FALSE", "Null", "None"])
def test_words_that_other_loaders_turn_into_booleans_stay_text(word: str) -> None:
    """A column named `on` and the country code NO are text."""
    assert read_word(word) == word


@pytest.mark.parametrize(
    "word", ["007", "1_000", "12:30", "2026-01-01", "1.2.3", "-", ".", "+", "e5", "1e", "0b1"]
)
def test_words_that_look_a_little_like_numbers_stay_text(word: str) -> None:
    """Leading zeros, times and dates bear meaning that a number would lose."""
    assert read_word(word) == word


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("0", 0), ("-5", -5), ("+5", 5), ("0x1f", 31), ("0o17", 15), ("1e-3", 0.001), ("1E5", 1e5),
        (".5", 0.5), ("5.", 5.0), ("-2.5e+3", -2500.0), (".inf", math.inf), ("-.inf", -math.inf),
        ("true", True), ("false", False), ("null", None), ("~", None), ("", None),
    ],
)  # fmt: skip
def test_words_of_the_core_schema_are_typed(word: str, value: object) -> None:
    """`1e-3` is a number here, unlike in YAML 1.1: learning rates are written so."""
    assert read_word(word) == value
    assert type(read_word(word)) is type(value)


def test_not_a_number_is_read() -> None:
    """Dumpers write it; the model refuses it where a number is expected."""
    assert math.isnan(read_word(".nan"))  # type: ignore[arg-type]


def test_a_number_of_any_length_does_not_break_the_reader() -> None:
    """CPython refuses decimals of more than 4,300 digits with a ValueError."""
    assert isinstance(read_word("9" * 10_000), (str, float))


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none())
def test_a_value_written_out_reads_back(value: int | float | bool | None) -> None:
    """A placeholder inside a longer text must spell values as a manifest would."""
    assert read_word(write_word(value)) == value


def test_a_number_too_long_to_be_written_out_stays_text() -> None:
    """CPython refuses to print it, which would end any error message, and the digest, with an error."""
    assert read_word("0x" + "f" * 6000) == "0x" + "f" * 6000
    assert isinstance(read_word("0x" + "f" * 1000), int)
