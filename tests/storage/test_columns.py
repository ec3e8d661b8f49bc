from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.storage.columns import Columns
from treadle.storage.grid import grid_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
batches = st.lists(st.lists(st.dictionaries(st.sampled_from("abc"), values), max_size=6), max_size=4)


def holds(cell: Any, value: Any) -> bool:
    """Whether a cell of a table says what the JSON value says; a field that a table added is null."""
    if isinstance(value, dict):
        return all(holds(cell[name], inner) for name, inner in value.items()) and all(
            name in value or cell[name] is None for name in cell
        )
    if isinstance(value, list):
        return len(cell) == len(value) and all(map(holds, cell, value))
    return bool(cell == value) and (cell is None) == (value is None)


@given(batches)
def test_a_row_is_kept_whole_or_reported_and_never_changed(batches: list[list[dict[str, Any]]]) -> None:
    """The promise of the room: no value turns into null, text or another number because of rows before it."""
    columns = Columns()
    for rows in batches:
        batch, misfits = columns.fit(rows)
        lost = {each.index for each in misfits}
        kept = [row for index, row in enumerate(rows) if index not in lost]
        assert batch.num_rows == len(kept)
        for cells, row in zip(batch.to_pylist(), kept, strict=True):
            assert holds(cells, row)


@given(batches)
def test_the_columns_of_a_unit_only_widen(batches: list[list[dict[str, Any]]]) -> None:
    """A writer that has part of a unit on disk must be able to take the rest."""
    columns = Columns()
    schemas = [columns.fit(rows)[0].schema for rows in batches]
    for before, after in pairwise(schemas):
        assert pa.unify_schemas([before, after], promote_options="permissive") == after


def test_a_later_value_of_another_kind_costs_its_row_and_says_so() -> None:
    columns = Columns()
    columns.fit([{"n": 1, "tags": ["a"], "who": {"age": 4}}])
    batch, misfits = columns.fit(
        [
            {"n": "x"},
            {"n": 2},
            {"tags": ["a", 3]},
            {"who": {"age": "old"}},
            {"n": 1.5},
            {"n": True},
            {"tags": "a"},
        ]
    )
    assert batch.column("n").to_pylist() == [2]
    assert [(each.index, each.reason) for each in misfits] == [
        (0, "column n: expected int64, found a string 'x'"),
        (2, "column tags[]: expected string, found an integer 3"),
        (3, "column who.age: expected int64, found a string 'old'"),
        (4, "column n: expected int64, found a number 1.5"),
        (5, "column n: expected int64, found a boolean True"),
        (6, "column tags: expected list<item: string>, found a string 'a'"),
    ]


def test_a_column_of_nulls_stays_open() -> None:
    """Null for the first thousands of rows is common in real data; the values that follow must not be
    lost.
    """
    columns = Columns()
    first, _ = columns.fit([{"a": None, "l": []}] * 3)
    second, misfits = columns.fit([{"a": "text", "l": [1.5, 2]}])
    assert first.schema.types == [pa.null(), pa.list_(pa.null())]
    assert second.to_pylist() == [{"a": "text", "l": [1.5, 2.0]}]
    assert misfits == ()


@pytest.mark.parametrize(("value", "fits"), [(2**53, True), (-(2**53), True), (2**53 + 1, False)])
def test_an_integer_in_a_column_of_fractions_must_be_exact(value: int, fits: bool) -> None:
    _, misfits = Columns().fit([{"a": 0.5}, {"a": value}])
    assert bool(misfits) is not fits


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1}, "column a: a Python set has no JSON form: {1}"),
        ([b"x"], "column a[]: a Python bytes has no JSON form: b'x'"),
        (np.int64(3), "column a: a Python int64 has no JSON form: np.int64(3); .item() gives one that has"),
        ({"b": (1,)}, "column a.b: a Python tuple has no JSON form: (1,)"),
    ],
)
def test_a_value_that_json_does_not_have_is_a_misfit(value: object, reason: str) -> None:
    """Functions of users give such; the row is named, and the values beside it are not lost."""
    batch, misfits = Columns().fit([{"a": value}, {"a": None}])
    assert [(each.index, each.kind, each.reason) for each in misfits] == [(0, "wrong-type", reason)]
    assert batch.num_rows == 1


@given(batches)
def test_what_settled_columns_say_is_what_a_check_would_find(batches: list[list[dict[str, Any]]]) -> None:
    """The quick look may be wrong only in saying no."""
    columns = Columns()
    for rows in batches:
        grid, before = grid_of(rows), columns.schema
        settled = columns.settled(grid)
        assert not (columns.check(rows, grid).misfits and settled)
        assert not settled or columns.schema == before


def test_columns_that_are_known_before_the_first_row_are_kept() -> None:
    columns = Columns(schema=Columns().fit([{"a": "x", "b": 1}])[0].schema)
    batch, misfits = columns.fit([{"b": 1}, {"a": 2, "b": 2}])
    assert batch.to_pylist() == [{"a": None, "b": 1}]
    assert [each.index for each in misfits] == [1]


@pytest.mark.parametrize(("kind", "value"), [("string", "x"), ("int64", 1), ("float64", 0.5), ("bool", True)])
def test_a_declared_type_stands_before_any_value(kind: str, value: object) -> None:
    """Even if the first rows have another type, or only nulls."""
    columns = Columns(types={"a": kind})
    batch, misfits = columns.fit([{"a": None}, {"a": []}, {"a": value}])
    assert [each.index for each in misfits] == [1]
    assert batch.column("a").to_pylist() == [None, value]


def test_declared_columns_are_the_only_ones_and_keep_their_order() -> None:
    """A row without a declared column has null there; what was not asked for is not looked at."""
    columns = Columns(("b", "a"))
    batch, misfits = columns.fit([{"a": 1, "b": "x", "c": 1}, {"c": "not a number"}])
    assert batch.to_pylist() == [{"b": "x", "a": 1}, {"b": None, "a": None}]
    assert batch.schema.names == ["b", "a"]
    assert misfits == ()


def test_rows_without_any_column_still_count() -> None:
    batch, _ = Columns().fit([{}, {}])
    assert batch.num_rows == 2
