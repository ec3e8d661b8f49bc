"""Columns chosen, dropped and renamed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.row_steps import given
from treadle.domain.row_columns import DropColumns, RenameColumns, SelectColumns
from treadle.errors import ArgumentError

ROWS: list[dict[str, Any]] = [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": None, "c": None}]


def test_select_keeps_columns_in_the_order_asked_for() -> None:
    assert [list(row.items()) for row in given(SelectColumns(["b", "a"]).step(), ROWS)] == [
        [("b", "x"), ("a", 1)],
        [("b", None), ("a", 2)],
    ]


def test_drop_leaves_columns_out() -> None:
    assert given(DropColumns(["b", "c"]).step(), ROWS) == [{"a": 1}, {"a": 2}]


def test_rename_goes_all_at_once() -> None:
    """So that two columns can change their names."""
    assert given(RenameColumns({"a": "b", "b": "a"}).step(), ROWS[:1]) == [{"b": 1, "a": "x", "c": None}]


def test_a_new_name_that_is_there_already() -> None:
    with pytest.raises(ArgumentError, match="rename: column 'a' cannot become 'c', which is there already"):
        given(RenameColumns({"a": "c"}).step(), ROWS)


@pytest.mark.parametrize("step", [SelectColumns(["x"]), DropColumns(["x"]), RenameColumns({"x": "y"})])
def test_each_needs_its_columns(step: Any) -> None:
    """A misspelt name must not pass in silence, least of all where a column was to be dropped."""
    assert step.step().needs == ("x",)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: SelectColumns([]), "columns: must be a list of distinct columns, at least one"),
        (lambda: DropColumns(["a", "a"]), "columns: must be a list of distinct columns"),
        (lambda: RenameColumns({}), "columns: must be a list of distinct columns, at least one"),
        (lambda: RenameColumns({"a": "c", "b": "c"}), "columns: two columns would get one name"),
    ],
)
def test_options_that_make_no_sense(make: Any, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        make()
