"""The form that rows have in a chain, and the positions that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from tests.processing.row_functions import (
    double,
    inverse,
    inverse_batch,
    odd,
    odd_batch,
    refuse_batch,
    repeat,
)
from treadle.domain.result import Counters, ProcessResult
from treadle.domain.row_batches import MapBatches
from treadle.domain.row_choice import HashColumns, KeepIf, SampleRows
from treadle.domain.row_function import FilterRows, MapRows
from treadle.domain.row_step import RowStep, records_of
from treadle.domain.row_text import CountWords, LengthFilter
from treadle.errors import ArgumentError, MissingColumnError
from treadle.processing.chain import Chain, Chained
from treadle.processing.row_fitting import Fitting
from treadle.storage import RowBatch
from treadle.storage.columns import Columns

COUNT, KEEP = CountWords().step(), KeepIf("n", at_least=2).step()
MAP, FILTER = MapRows("x:double").step(double), FilterRows("x:odd").step(odd)
BATCHES = MapBatches("x:odd_batch").step(odd_batch)
MANY = MapRows("x:repeat", many=True).step(repeat)

ROWS = [{"n": number, "text": "a b"} for number in (1, 2, 3)]


def records(rows: Sequence[dict[str, Any]] = ROWS) -> RowBatch:
    columns = Columns()
    checked = columns.check(rows)
    return RowBatch(range(1, len(rows) + 1), "a.jsonl", given=checked.records, schema=columns.schema)


def table(rows: Sequence[dict[str, Any]] = ROWS) -> RowBatch:
    return RowBatch(range(1, len(rows) + 1), "a.parquet", table=pa.RecordBatch.from_pylist(list(rows)))


@pytest.mark.parametrize("steps", [[COUNT], [KEEP, COUNT], [MAP, FILTER, COUNT], [MANY]])
def test_records_of_json_never_become_a_table(steps: list[RowStep]) -> None:
    batch = records()
    done = Chain(steps, json=True)(batch)
    assert isinstance(done.rows, list)
    assert "rows" not in vars(batch), "a record batch was made of the records"


@pytest.mark.parametrize("steps", [[COUNT], [KEEP, COUNT], [FILTER, BATCHES]])
def test_a_table_stays_a_table(steps: list[RowStep]) -> None:
    batch = table()
    assert isinstance(Chain(steps, json=True)(batch).rows, pa.RecordBatch)
    assert "records" not in vars(batch)


@pytest.mark.parametrize("batch", [records(), table()])
def test_a_step_without_a_form_gets_the_other(batch: RowBatch) -> None:
    """A function of batches amid functions of rows."""
    done = Chain([MAP, BATCHES, MAP], json=True)(batch)
    assert (len(done.rows), done.out, done.filtered) == (0, 0, 3)
    done = Chain([MAP, KEEP, COUNT, MAP], json=False)(batch)
    assert isinstance(done.rows, pa.RecordBatch)
    assert done.rows["n"].to_pylist() == [4, 8, 12]
    assert done.rows["words"].to_pylist() == [2, 2, 2]


def test_rows_made_of_one_row_are_out_once_though_a_batch_hid_some() -> None:
    """3 gives copies 0, 1, 2 with n 3; of 2, which is even, none is left."""
    done = Chain([MANY, BATCHES], json=True)(records())
    assert (len(done.rows), done.out, done.filtered) == (4, 2, 1)
    assert done.extra == {"rows_made": 4}


def test_a_column_seen_once_in_the_unit_is_no_longer_missing() -> None:
    """A later batch of rows that all lack it has nulls there, as in a table."""
    chain = Chain([COUNT], json=True)
    with pytest.raises(MissingColumnError):
        chain(records([{"n": 1}]))
    assert [row["words"] for row in rows_of(chain(records()))] == [2, 2, 2]
    assert rows_of(chain(records([{"n": 1}]))) == [{"n": 1, "words": None}]


def test_columns_seen_in_different_batches_are_all_there() -> None:
    """Of the rows of a function nobody knows the columns before."""
    chain = Chain([MapRows("x:same").step(lambda row: row), HashColumns(["n", "text"]).step()], json=True)
    for lacking in ({"n": 1}, {"m": 1}):
        with pytest.raises(MissingColumnError):
            chain(records([lacking]))
    assert len(rows_of(chain(records([{"text": "a"}])))) == 1
    assert len(rows_of(chain(records([{"m": 1}])))) == 1


def test_a_row_refused_after_others_were_left_out_is_known(as_text_at_three: RowStep) -> None:
    """odd_batch gives 1, 3, 1 and does not say of which rows; the second of those given is 3."""
    rows = [{"n": number} for number in (2, 1, 3, 4, 1)]
    done = Chain([BATCHES, as_text_at_three], json=True)(table(rows))
    assert rows_of(done) == [{"n": 1}, {"n": 1}]
    assert [each.index for each in done.rejects] == [2]
    assert (done.out, done.filtered) == (2, 2)


def test_of_a_row_made_of_several_nothing_is_left_when_one_is_bad() -> None:
    """Two copies of 2 are good, one copy of 3 is not: 3 is bad, and none of its copies appears."""
    last = MapRows("x:last").step(lambda row: {**row, "copy": "x" if row["copy"] == 2 else row["copy"]})
    done = Chain([MANY, last], json=True)(records())
    assert rows_of(done) == [{"n": 1, "copy": 0}, {"n": 2, "copy": 0}, {"n": 2, "copy": 1}]
    assert [(each.index, each.kind) for each in done.rejects] == [(2, "wrong-type")]
    assert (done.out, done.filtered, done.extra) == (2, 0, {"rows_made": 3})


@pytest.fixture
def as_text_at_three() -> RowStep:
    return MapRows("x:text").step(lambda row: {"n": "three" if row["n"] == 3 else row["n"]})


def test_a_result_that_left_rows_out_does_not_pretend_to_know_which() -> None:
    """It gives the last row of a batch, without `kept`."""

    def last(batch: pa.RecordBatch) -> ProcessResult:
        return ProcessResult({"rows": batch.slice(batch.num_rows - 1)}, (), Counters(batch.num_rows, 1))

    steps = [MapBatches("x:last").step(last), MapRows("x:fail").step(lambda row: 1 / 0)]
    done = Chain(steps, json=True)(table())
    assert [each.index for each in done.rejects] == [0, 1, 2], "each row is the last of its own batch"


def rows_of(done: Any) -> list[Any]:
    return list(records_of(done.rows))


def test_the_rows_of_a_unit_need_not_be_in_one_batch_to_fit_each_other() -> None:
    fitting = Fitting()
    assert fitting.fit([{"n": 1}, {"n": None}], as_batch=True).rejects == []
    later = fitting.fit([{"n": "x"}, {"m": b"y"}, {"n": 2, "m": "z"}], as_batch=True)
    assert [(each.index, each.kind) for each in later.rejects] == [(0, "wrong-type"), (2, "wrong-type")]
    assert isinstance(later.rows, pa.RecordBatch)
    assert later.rows.to_pylist() == [{"n": None, "m": b"y"}]
    assert [(each.name, each.type) for each in later.rows.schema] == [("n", pa.int64()), ("m", pa.binary())]
    (reject,) = fitting.fit([{"n": b"bytes"}], as_batch=True).rejects
    assert reject.reason == "column n: expected int64, found bytes"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"n": object()}, "column n: expected a value of a table, found object"),
        ({5: 1}, "a row has the column 5, expected a name"),
        ({"n": [1, {"x": 2**64}]}, r"column n\[\].x: 18446744073709551616 does not fit into 64 bits"),
        ({"n": {"x": float("inf")}}, "column n.x: inf has no JSON form"),
    ],
)
def test_values_that_no_column_takes(row: Any, reason: str) -> None:
    fitted = Fitting(finite=True).fit([row], as_batch=False)
    assert len(fitted.rows) == 0
    (reject,) = fitted.rejects
    assert reject.reason == reason.replace("\\", "")


ROW = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(0, 7),
        "text": st.none() | st.sampled_from(["", "a b", "\N{LATIN SMALL LETTER E}\u0301"]),
    }
)
STEPS: list[RowStep] = [
    COUNT,
    KEEP,
    MAP,
    FILTER,
    BATCHES,
    MANY,
    MapRows("x:inverse").step(inverse),
    MapBatches("x:inverse_batch").step(inverse_batch),
    MapBatches("x:refuse_batch").step(refuse_batch),
    MapRows("x:text").step(lambda row: {**row, "n": str(row["n"]) if row["n"] == 7 else row["n"]}),
    SampleRows(0.5).step(),
    LengthFilter(min=1).step(),
]
TYPES: list[tuple[str, pa.DataType]] = [("n", pa.int64()), ("text", pa.string())]


def account(done: Sequence[Chained]) -> tuple[int, ...]:
    return (
        sum(each.out for each in done),
        sum(each.filtered for each in done),
        sum(len(each.rejects) for each in done),
    )


def read(rows: Sequence[dict[str, Any]], *, as_table: bool) -> RowBatch:
    schema = pa.schema(TYPES)
    numbers = range(1, len(rows) + 1)
    if as_table:
        return RowBatch(numbers, "a", table=pa.RecordBatch.from_pylist(list(rows), schema=schema))
    return RowBatch(numbers, "a", given=rows, schema=schema)


@hypothesis.given(
    st.lists(ROW, min_size=1, max_size=8), st.lists(st.sampled_from(STEPS), min_size=1, max_size=4)
)
def test_every_row_is_accounted_for_in_any_form_and_size_of_batches(
    rows: list[dict[str, Any]], steps: list[RowStep]
) -> None:
    """Rows out, and which rows are bad, depend on the rows alone."""
    steps = [each for each in steps if "text" not in each.needs] if MANY in steps else steps
    found = []
    for as_table in (False, True):
        done = Chain(steps, json=True)(read(rows, as_table=as_table))
        assert done.out + done.filtered + len(done.rejects) == len(rows)
        assert min(done.out, done.filtered) >= 0
        found.append((rows_of(done), account([done]), [(each.index, each.kind) for each in done.rejects]))
    assert found[0] == found[1]
    chain = Chain(steps, json=True)
    ones = [chain(read([row], as_table=False)) for row in rows]
    assert [row for each in ones for row in rows_of(each)] == found[0][0]
    assert account(ones) == found[0][1]


def test_a_step_without_functions() -> None:
    with pytest.raises(ArgumentError, match="neither a function of records nor one of batches"):
        Chain([RowStep()], json=True)(records())
