"""Transforms of text columns: the same on records and on batches, null stays null, the rest is refused."""

from __future__ import annotations

import unicodedata
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from tests.domain.row_steps import Rows, both, column, given, rows_of
from treadle.domain.result import Reject
from treadle.domain.row_text import CountWords, LengthFilter, NormalizeRows, ReplaceRows
from treadle.errors import ArgumentError

DECOMPOSED = "e\N{COMBINING ACUTE ACCENT}"


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({}, DECOMPOSED, "\N{LATIN SMALL LETTER E WITH ACUTE}"),
        ({"form": None}, DECOMPOSED, DECOMPOSED),
        ({"form": "NFKC"}, "\N{LATIN SMALL LIGATURE FI}t", "fit"),
        ({"lowercase": True}, "Straße ÉA", "straße éa"),
        ({"whitespace": True}, "  a\t b\n\nc\N{NO-BREAK SPACE}d ", "a b c d"),
        ({"strip_control": True}, "a\x00b\x1bc\td\n", "abc\td\n"),
        ({"strip_control": True, "whitespace": True, "lowercase": True}, " A\x07 \n B ", "a b"),
        ({"whitespace": True}, "", ""),
    ],
)
def test_normalize(options: dict[str, Any], text: str, expected: str) -> None:
    assert column(NormalizeRows(**options).step(), "text", [text, None]) == [expected, None]


@drawn(st.text(), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_normalizing_twice_changes_nothing_more(text: str, form: Any) -> None:
    """Lowering can leave a sequence that is not normal, which must not show."""
    step = NormalizeRows(form=form, lowercase=True, whitespace=True, strip_control=True).step()
    (once,) = column(step, "text", [text])
    assert unicodedata.is_normalized(form, once)
    assert column(step, "text", [once]) == [once]


def test_a_text_that_is_none_is_refused_with_its_type() -> None:
    """The row alone; the others go on."""
    rows: list[dict[str, Any]] = [{"id": 1, "text": 5}, {"id": 2, "text": 6}]
    stepped = both(NormalizeRows().step(), rows)
    assert rows_of(stepped) == []
    assert stepped.rejects == (
        Reject(0, "text is int, expected a string", "wrong-type"),
        Reject(1, "text is int, expected a string", "wrong-type"),
    )


def test_large_strings_of_a_table_stay_large() -> None:
    """A column of more than 2 GiB would not fit into another type."""
    step = NormalizeRows(lowercase=True).step()
    assert step.batches is not None
    batch = pa.RecordBatch.from_arrays([pa.array(["A"], pa.large_string())], names=["text"])
    made = step.batches(batch).rows
    assert isinstance(made, pa.RecordBatch)
    assert made.schema.field("text").type == pa.large_string()


def test_replace_with_groups_and_nulls() -> None:
    step = ReplaceRows("text", r"(\w+)@(\w+)", r"\2 at \1").step()
    assert column(step, "text", ["me@home, you@work", None, ""]) == ["home at me, work at you", None, ""]
    assert column(ReplaceRows("text", r"\d+").step(), "text", ["a1b22", "c"]) == ["ab", "c"]


def test_replace_is_linear_where_backtracking_is_not() -> None:
    """(a+)+$ over a's and a b takes a backtracking engine 2**n steps: with n = 5,000 it would never end."""
    text = "a" * 5000 + "b"
    assert column(ReplaceRows("text", "(a+)+$", "x").step(), "text", [text]) == [text]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"column": "text", "pattern": "(a"}, "pattern: .*missing \\)"),
        ({"column": "text", "pattern": r"(a)\1"}, "pattern: .*invalid escape"),
        ({"column": "text", "pattern": "a", "by": r"\7"}, "by: .*"),
    ],
)
def test_a_pattern_that_re2_does_not_take(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        ReplaceRows(**options)


def test_count_words_goes_into_another_column() -> None:
    rows: Rows = [{"text": " to be\nor "}, {"text": ""}, {"text": None}]
    assert [row["words"] for row in given(CountWords().step(), rows)] == [3, 0, None]
    assert given(CountWords(into="text").step(), rows[:1]) == [{"text": 3}]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, ["", "a", "a b", "abc d e"]),
        ({"min": 1}, ["a", "a b", "abc d e"]),
        ({"min": 1, "max": 2}, ["a", "a b"]),
        ({"unit": "characters", "min": 3, "max": 3}, ["a b"]),
        ({"unit": "characters", "max": 1}, ["", "a"]),
    ],
)
def test_length(options: dict[str, Any], kept: list[str]) -> None:
    """A null has no length, so it is not kept."""
    assert column(LengthFilter(**options).step(), "text", ["", "a", "a b", "abc d e", None]) == kept


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: LengthFilter(min=-1), "min: must be at least 0, got -1"),
        (lambda: LengthFilter(min=3, max=2), "max: must be at least min, which is 3, got 2"),
        (lambda: LengthFilter(unit="lines"), "unit: must be words or characters, got 'lines'"),  # type: ignore[arg-type]
        (lambda: NormalizeRows(form="NFX"), "form: must be one of NFC"),  # type: ignore[arg-type]
        (lambda: NormalizeRows(columns=[]), "columns: must be a list of distinct columns, at least one"),
        (lambda: NormalizeRows(columns=["a", "a"]), "columns: must be a list of distinct columns"),
        (lambda: NormalizeRows(columns="text"), "columns: must be a list of distinct columns"),
    ],
)
def test_options_that_make_no_sense(make: Any, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        make()
