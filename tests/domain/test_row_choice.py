"""Rows kept by value and by chance, and hashes of columns."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pytest

from tests.domain.row_steps import batch_of, both, column, given, rows_of
from treadle.domain.result import Reject
from treadle.domain.row_choice import HashColumns, KeepIf, SampleRows
from treadle.errors import ArgumentError


@pytest.mark.parametrize(
    ("condition", "values", "kept"),
    [
        ({"equals": "en"}, ["en", "de", None, "En"], ["en"]),
        ({"equals": 1}, [1, 2, None], [1]),
        ({"equals": True}, [True, False, None], [True]),
        ({"equals": False}, [True, False, None], [False]),
        ({"one_of": ["a", "b"]}, ["b", "c", "a"], ["b", "a"]),
        ({"one_of": []}, ["b"], []),
        ({"at_least": 0.5}, [0.4, 0.5, 0.6, None, float("nan")], [0.5, 0.6]),
        ({"at_most": 2}, [1, 2, 3], [1, 2]),
        ({"at_least": 1, "at_most": 2}, [0, 1, 2, 3], [1, 2]),
        ({"at_least": "2024-01-01"}, ["2023-12-31", "2024-06-01"], ["2024-06-01"]),
        ({"matches": "^a.c"}, ["abcd", "xabc", None, "a.c"], ["abcd", "a.c"]),
    ],
)
def test_keep_if(condition: dict[str, Any], values: list[Any], kept: list[Any]) -> None:
    assert column(KeepIf("value", **condition).step(), "value", values) == kept


def test_true_is_not_one() -> None:
    assert column(KeepIf("value", equals=1).step(), "value", [True]) == []
    assert column(KeepIf("value", equals=True).step(), "value", [1]) == []


@pytest.mark.parametrize(
    ("condition", "value", "reason"),
    [
        ({"at_least": 1}, "2", "value is str, expected a number"),
        ({"at_least": 1}, True, "value is bool, expected a number"),
        ({"at_most": "x"}, 2, "value is int, expected a string"),
        ({"matches": "x"}, 2, "value is int, expected a string"),
    ],
)
def test_what_cannot_be_compared_is_bad(condition: dict[str, Any], value: Any, reason: str) -> None:
    """Leaving it out in silence would hide a column that is not what it was taken for."""
    stepped = both(KeepIf("value", **condition).step(), [{"value": value}])
    assert stepped.rejects == (Reject(0, reason, "wrong-type"),)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ({}, "one condition of equals.* is needed, got none"),
        ({"equals": 1, "matches": "x"}, "one condition .* got equals, matches"),
        ({"matches": "("}, "matches: "),
        ({"at_least": 1, "at_most": "b"}, "at_most: must be a text when at_least is one"),
    ],
)
def test_conditions_that_make_no_sense(condition: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        KeepIf("value", **condition)


def numbers(count: int) -> list[dict[str, Any]]:
    return [{"id": number, "text": f"row {number}"} for number in range(count)]


def test_a_sample_is_about_its_fraction_and_the_same_whatever_is_beside_it() -> None:
    """2,000 draws at 0.25: 500 give or take 19.4; five times that is 97."""
    step = SampleRows(0.25, ["id"]).step()
    rows = given(step, numbers(2000))
    assert abs(len(rows) - 500) < 97
    alone = [row for row in numbers(2000) if given(step, [row])]
    assert alone == rows
    assert given(SampleRows(0.25, ["id"], seed=1).step(), numbers(2000)) != rows


def test_a_sample_grows_with_its_fraction() -> None:
    """Who takes 1% to look and then 10% has the 1% in it."""
    few = given(SampleRows(0.1).step(), numbers(500))
    many = given(SampleRows(0.4).step(), numbers(500))
    assert [row for row in many if row in few] == few
    assert given(SampleRows(1.0).step(), numbers(20)) == numbers(20)
    assert given(SampleRows(0.0).step(), numbers(20)) == []


def test_a_sample_of_the_present_is_that_of_tomorrow() -> None:
    """Pinned: another choice would silently change every data set that was made with it."""
    chosen = [row["id"] for row in given(SampleRows(0.3, ["text"]).step(), numbers(12))]
    assert chosen == [4, 5, 8, 10]


def test_rows_with_the_same_values_stay_together() -> None:
    rows = [{"id": number, "site": f"s{number % 7}"} for number in range(70)]
    kept = {row["site"] for row in given(SampleRows(0.5, ["site"]).step(), rows)}
    assert given(SampleRows(0.5, ["site"]).step(), rows) == [row for row in rows if row["site"] in kept]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_is_from_0_to_1(fraction: float) -> None:
    with pytest.raises(ArgumentError, match="fraction: must be from 0 to 1"):
        SampleRows(fraction)


def test_the_hash_of_one_text_is_that_of_its_bytes() -> None:
    """So it can be compared with what other tools make."""
    made = given(HashColumns(["text"]).step(), [{"text": "größe"}, {"text": None}])
    assert [row["hash"] for row in made] == [hashlib.sha256("größe".encode()).hexdigest(), None]
    (short,) = given(HashColumns(["text"], "key", "blake2b").step(), [{"text": "a"}])
    assert short["key"] == hashlib.blake2b(b"a", digest_size=32).hexdigest()


def test_the_hash_of_several_columns_tells_them_apart() -> None:
    """ab, c and a, bc have the same letters."""
    rows: list[dict[str, Any]] = [
        {"a": "ab", "b": "c"},
        {"a": "a", "b": "bc"},
        {"a": "ab", "b": "c"},
        {"a": None, "b": "c"},
    ]
    hashes = [row["hash"] for row in given(HashColumns(["a", "b"]).step(), rows)]
    assert hashes[0] == hashes[2] == hashlib.sha256(b'["ab","c"]').hexdigest()
    assert len(set(hashes)) == 3


def test_a_hash_does_not_depend_on_the_type_of_a_table() -> None:
    """1 and 1.0 in one column of JSON, a field that only another row has: the table holds 1.0 and a null."""
    rows: list[dict[str, Any]] = [{"n": 1, "o": {"x": 1}}, {"n": 1.5, "o": {"x": 1, "y": 2}}]
    step = HashColumns(["n", "o"]).step()
    assert step.records is not None
    assert step.batches is not None
    schema = pa.schema([("n", pa.float64()), ("o", pa.struct([("x", pa.int64()), ("y", pa.int64())]))])
    of_table = rows_of(step.batches(batch_of(rows, schema)))
    assert [row["hash"] for row in rows_of(step.records(rows))] == [row["hash"] for row in of_table]


def test_a_method_nobody_knows() -> None:
    with pytest.raises(ArgumentError, match="method: must be sha256 or blake2b, got 'md5'"):
        HashColumns(["a"], method="md5")  # type: ignore[arg-type]
