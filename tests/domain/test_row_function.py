"""Functions of one row and of a batch: what they may return, and what an error of theirs costs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.domain.row_steps import batch_of, both, rows_of
from treadle.domain.result import Counters, ProcessResult, Reject
from treadle.domain.row_batches import MapBatches
from treadle.domain.row_function import FilterRows, MapRows
from treadle.domain.row_step import Stepped
from treadle.errors import ArgumentError, MissingColumnError, RunError, StoppedError

ROWS: list[dict[str, Any]] = [{"n": 1}, {"n": 0}, {"n": 2}]


def mapped(function: Callable[..., object], *, many: bool = False) -> Stepped:
    step = MapRows("mine:clean", many).step(function)
    assert step.records is not None
    assert step.batches is None
    return step.records(ROWS)


def test_map_gives_a_row_or_none() -> None:
    stepped = mapped(lambda row: {"half": row["n"] / 2} if row["n"] else None)
    assert rows_of(stepped) == [{"half": 0.5}, {"half": 1.0}]
    assert stepped.origins == [0, 2]


def test_map_may_change_the_record_it_gets() -> None:
    """It is its own: the row that was read stays what it was, for the quarantine."""

    def change(row: dict[str, Any]) -> dict[str, Any]:
        row["n"] += 1
        return row

    assert rows_of(mapped(change)) == [{"n": 2}, {"n": 1}, {"n": 3}]
    assert ROWS == [{"n": 1}, {"n": 0}, {"n": 2}]


def test_many_gives_several_rows_for_one() -> None:
    stepped = mapped(lambda row: [{"at": at} for at in range(row["n"])], many=True)
    assert rows_of(stepped) == [{"at": 0}, {"at": 0}, {"at": 1}]
    assert stepped.origins == [0, 2, 2]


def test_a_row_at_which_the_function_raises_is_bad_alone() -> None:
    """With the type, the message, and the line of the function to look at."""

    def clean(row: dict[str, Any]) -> dict[str, Any]:
        return {"inverse": 1 / row["n"]}

    stepped = mapped(clean)
    assert rows_of(stepped) == [{"inverse": 1.0}, {"inverse": 0.5}]
    (reject,) = stepped.rejects
    assert (reject.index, reject.kind) == (1, "failed")
    pattern = r"ZeroDivisionError: division by zero \(test_row_function\.py:\d+ in clean\)"
    assert re.fullmatch(pattern, reject.reason)


def test_the_place_is_in_the_functions_own_file_and_the_message_on_one_line() -> None:
    """An error deep in a library says little; the line that called it does."""

    def parse(row: dict[str, Any]) -> object:
        return re.compile("(" * row["n"])

    reasons = [each.reason for each in mapped(parse).rejects]
    assert re.search(r"\(test_row_function\.py:\d+ in parse\)$", reasons[0])

    def loud(row: dict[str, Any]) -> object:
        raise ValueError(f"{row}\n" + "x" * 1000)

    assert all("\n" not in each.reason and len(each.reason) < 400 for each in mapped(loud).rejects)


@pytest.mark.parametrize("error", [MemoryError(), StoppedError("stop"), KeyboardInterrupt()])
def test_what_is_no_fault_of_the_row_is_raised(error: BaseException) -> None:
    def fail(row: Any) -> object:
        raise error

    with pytest.raises(type(error)):
        mapped(fail)
    with pytest.raises(type(error)):
        both(FilterRows("mine:keep").step(fail), ROWS)
    if isinstance(error, (MemoryError, StoppedError)):
        with pytest.raises(type(error)):
            batches(fail)


@pytest.mark.parametrize(
    ("function", "many", "reason"),
    [
        (lambda _row: 5, False, "mine:clean returned int, expected a dict or None"),
        (lambda _row: 5, True, "mine:clean returned int, expected a dict, a list of dicts or None"),
        (lambda row: [row], False, "mine:clean returned list, .*; a list needs many: true"),
        (lambda row: [row, 5], True, "mine:clean returned list, expected a dict, a list of dicts"),
    ],
)
def test_map_returns_something_else(function: Any, many: bool, reason: str) -> None:
    rejects = mapped(function, many=many).rejects
    assert len(rejects) == 3
    assert all(re.match(reason, each.reason) and each.kind == "failed" for each in rejects)


def test_filter_keeps_rows_and_their_types() -> None:
    stepped = both(FilterRows("mine:keep").step(lambda row: row["n"] > 0), ROWS)
    assert rows_of(stepped) == [{"n": 1}, {"n": 2}]


def test_filter_must_answer_true_or_false() -> None:
    """A truthy value is mostly a mistake: `row.get` in place of a comparison."""
    stepped = both(FilterRows("mine:keep").step(lambda row: row["n"]), ROWS)
    assert len(stepped.rejects) == 3
    assert stepped.rejects[0] == Reject(0, "mine:keep returned int, expected True or False", "failed")


def test_an_entry_without_its_function() -> None:
    with pytest.raises(ArgumentError, match="entry: the function 'mine:clean' must be imported"):
        MapRows("mine:clean").step()


def batches(function: Callable[..., object], rows: list[dict[str, Any]] | None = None) -> Stepped:
    step = MapBatches("mine:clean").step(function)
    assert step.batches is not None
    return step.batches(batch_of(ROWS if rows is None else rows))


def test_a_function_of_a_batch() -> None:
    stepped = batches(lambda batch: batch)
    assert rows_of(stepped) == ROWS
    assert list(stepped.origins or ()) == [0, 1, 2]
    assert batches(lambda batch: batch.slice(1)).origins is None


def test_a_batch_that_fails_is_tried_row_by_row() -> None:
    """One bad row costs itself, not its thousand neighbours."""

    def inverse(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = [1 / row["n"] for row in batch.to_pylist()]
        return pa.RecordBatch.from_pydict({"n": values})

    stepped = batches(inverse)
    assert rows_of(stepped) == [{"n": 1.0}, {"n": 0.5}]
    assert stepped.origins == [0, 2]
    (reject,) = stepped.rejects
    assert (reject.index, reject.kind) == (1, "failed")
    assert reject.reason.startswith("ZeroDivisionError: division by zero (test_row_function.py:")


def test_a_batch_that_fails_at_every_row() -> None:
    def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError(batch.num_rows)

    stepped = batches(fail)
    assert len(stepped.rows) == 0
    assert [each.reason[:13] for each in stepped.rejects] == ["ValueError: 1"] * 3


def test_a_result_says_what_became_of_each_row() -> None:
    def choose(batch: pa.RecordBatch) -> ProcessResult:
        rows = batch.take(pa.array([2]))
        return ProcessResult({"rows": rows}, (Reject(1, "zero"),), Counters(3, 1, 1, 1), kept=[2])

    stepped = batches(choose)
    assert stepped.origins == [2]
    assert stepped.rejects == (Reject(1, "zero"),)


def test_a_result_of_records_where_nothing_was_filtered() -> None:
    """Then the rows are those that were not refused."""

    def refuse(batch: pa.RecordBatch) -> ProcessResult:
        rows = [row for row in batch.to_pylist() if row["n"]]
        return ProcessResult({"rows": rows}, (Reject(1, "zero"),), Counters(3, 2, 0, 1, {"seen": 3}))

    stepped = batches(refuse)
    assert stepped.origins == [0, 2]
    assert stepped.extra == {"seen": 3}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda batch: batch.to_pandas, "mine:clean returned .*, expected a RecordBatch or a ProcessResult"),
        (
            lambda batch: batch.take(pa.array([0, 1, 2, 2])),
            "mine:clean gave 4 rows and 0 rejects for 3 rows: .* use map with many: true",
        ),
        (
            lambda batch: ProcessResult({"others": batch}, (), Counters(3, 3)),
            r"mine:clean gave the outputs \['others'\], expected 'rows' alone",
        ),
    ],
)
def test_a_batch_function_breaks_its_contract(function: Any, reason: str) -> None:
    """That is no fault of a row, so the run ends."""
    with pytest.raises(RunError, match=reason):
        batches(function)


def test_a_column_that_is_missing_is_missing_for_the_whole_batch() -> None:
    def need(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise MissingColumnError("text", batch.schema.names)

    with pytest.raises(MissingColumnError):
        batches(need)


def test_rows_tried_one_by_one_must_have_one_type() -> None:
    def waver(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.num_rows > 1:
            raise ValueError
        value = batch["n"][0].as_py()
        return pa.RecordBatch.from_pydict({"n": [value if value else "none"]})

    with pytest.raises(RunError, match="mine:clean gave columns of several types for single rows"):
        batches(waver)
