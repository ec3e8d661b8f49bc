"""Run type `transform`: chains, what becomes of each row, both forms of rows, and other processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from treadle.domain.result import Counters
from treadle.errors import BadRowError, ManifestError, RunError

HERE = "tests.processing.row_functions"


def body(
    *transforms: str,
    reads: str = "jsonl",
    writes: str = "jsonl",
    errors: str = "quarantine",
    parallelism: str = "batch_rows: 100",
    more: str = "",
) -> str:
    steps = "".join(f"\n          - {{{each.replace('HERE', HERE)}}}" for each in transforms)
    return f"""
        run: {{type: transform}}
        inputs:
          anything: {{backend: {reads}, path: "${{params.in}}/*.{reads}"}}
        transforms: {steps or "[]"}
        outputs:
          rows: {{backend: {writes}, path: rows}}
        errors: {{on_bad_row: {errors}}}
        parallelism: {{{parallelism}}}
        {more}
    """


def numbers(*values: int) -> list[dict[str, Any]]:
    return [{"n": value, "text": f"row {value}"} for value in values]


def parquet(workshop: Any, name: str, rows: Sequence[dict[str, Any]], **types: pa.DataType) -> None:
    folder = workshop.root / "in"
    folder.mkdir(exist_ok=True)
    table = pa.Table.from_pylist(list(rows))
    for column, kind in types.items():
        table = table.set_column(table.schema.get_field_index(column), column, table[column].cast(kind))
    pq.write_table(table, folder / f"{name}.parquet")


def reasons(workshop: Any) -> list[tuple[int, str, str]]:
    return [(each["line"], each["kind"], each["reason"]) for each in workshop.quarantined()]


def problems_of(workshop: Any, manifest: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        workshop.run(manifest)
    assert all(each.line for each in caught.value.problems)
    return [str(each).split(": ", 1)[1] for each in caught.value.problems]


def test_a_chain_of_steps_in_order(workshop: Any) -> None:
    """Each sees what the one before it gave."""
    workshop.rows("a", numbers(1, 2, 3))
    workshop.rows("b", numbers(5))
    outcome = workshop.run(
        body(
            "name: map, entry: 'HERE:double'",
            "name: keep_if, column: n, at_least: 4",
            "name: rename, columns: {n: twice}",
            "name: count_words",
            "name: drop, columns: [text]",
        )
    )
    assert outcome.counters == Counters(rows_in=4, rows_out=3, filtered=1)
    assert workshop.read("rows", "jsonl") == [
        {"twice": 4, "words": 2},
        {"twice": 6, "words": 2},
        {"twice": 10, "words": 2},
    ]


BUILT_IN = {
    "map": ("name: map, entry: 'HERE:odd_or_none'", [1, 3]),
    "filter": ("name: filter, entry: 'HERE:odd'", [1, 3]),
    "map_batches": ("name: map_batches, entry: 'HERE:odd_batch'", [1, 3]),
    "normalize": ("name: normalize, lowercase: true, whitespace: true", [1, 2, 3]),
    "select": ("name: select, columns: [n]", [1, 2, 3]),
    "drop": ("name: drop, columns: [text]", [1, 2, 3]),
    "rename": ("name: rename, columns: {text: body}", [1, 2, 3]),
    "length": ("name: length, unit: characters, min: 5, max: 5", [1, 2, 3]),
    "count_words": ("name: count_words, into: words", [1, 2, 3]),
    "replace": ("name: replace, column: text, pattern: '[0-9]', by: '#'", [1, 2, 3]),
    "keep_if": ("name: keep_if, column: n, one_of: [2, 3]", [2, 3]),
    "hash": ("name: hash, columns: [text, n]", [1, 2, 3]),
    "sample": ("name: sample, fraction: 1.0", [1, 2, 3]),
    "tokenize": ("name: tokenize, keep: [n]", [1, 2, 3]),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_gives_the_same_rows_from_records_and_from_tables(new_workshop: Any, name: str) -> None:
    """jsonl -> jsonl goes by records, parquet -> parquet by tables; and across."""
    transform, kept = BUILT_IN[name]
    found = []
    for reads in ("jsonl", "parquet"):
        for writes in ("jsonl", "parquet"):
            shop = new_workshop()
            if reads == "jsonl":
                shop.rows("a", numbers(1, 2, 3))
            else:
                parquet(shop, "a", numbers(1, 2, 3))
            outcome = shop.run(body(transform, reads=reads, writes=writes, errors="fail"))
            assert outcome.counters == Counters(3, len(kept), 3 - len(kept))
            found.append(shop.read("rows", writes))
    assert found[1:] == found[:1] * 3
    if "n" in found[0][0]:
        assert [row["n"] for row in found[0]] == kept


def test_a_row_that_fails_is_bad_alone(workshop: Any) -> None:
    workshop.rows("a", numbers(1, 0, 2))
    outcome = workshop.run(body("name: map, entry: 'HERE:inverse'"))
    assert outcome.counters == Counters(rows_in=3, rows_out=2, rejected=1)
    ((line, kind, reason),) = reasons(workshop)
    assert (line, kind) == (2, "failed")
    assert reason.startswith("ZeroDivisionError: division by zero (row_functions.py:")
    assert workshop.quarantined()[0]["raw"] == '{"n": 0, "text": "row 0"}'


def test_a_row_that_fails_ends_a_run_that_takes_no_bad_rows(workshop: Any) -> None:
    workshop.rows("a", numbers(1, 0, 2))
    with pytest.raises(BadRowError, match=r"a\.jsonl:2: ZeroDivisionError.* in inverse"):
        workshop.run(body("name: map, entry: 'HERE:inverse'", errors="fail"))
    assert workshop.visible() == []


@pytest.mark.parametrize("reads", ["jsonl", "parquet"])
def test_a_batch_that_fails_is_tried_row_by_row(workshop: Any, reads: str) -> None:
    rows = numbers(1, 0, 2)
    workshop.rows("a", rows) if reads == "jsonl" else parquet(workshop, "a", rows)
    outcome = workshop.run(body("name: map_batches, entry: 'HERE:inverse_batch'", reads=reads))
    assert outcome.counters == Counters(rows_in=3, rows_out=2, rejected=1)
    assert [row["inverse"] for row in workshop.read("rows", "jsonl")] == [1.0, 0.5]
    assert [each[:2] for each in reasons(workshop)] == [(2, "failed")]


def test_many_rows_for_one_are_accounted_by_the_row_read(workshop: Any) -> None:
    """1 and 2 give rows, 0 gives none; of the rows of 2 a later step takes one."""
    workshop.rows("a", numbers(1, 0, 2))
    outcome = workshop.run(
        body("name: map, entry: 'HERE:repeat', many: true", "name: keep_if, column: copy, at_least: 0")
    )
    assert outcome.counters == Counters(rows_in=3, rows_out=2, filtered=1, extra={"rows_made": 3})
    assert workshop.read("rows", "jsonl") == [{"n": 1, "copy": 0}, {"n": 2, "copy": 0}, {"n": 2, "copy": 1}]


def test_of_a_row_that_was_refused_nothing_appears(workshop: Any) -> None:
    """Else its good part would appear twice once it was mended and run again."""
    workshop.rows("a", numbers(2, 3, 1))
    outcome = workshop.run(body("name: map, entry: 'HERE:repeat_with_a_flaw', many: true"))
    assert outcome.counters == Counters(rows_in=3, rows_out=2, rejected=1, extra={"rows_made": 3})
    assert [row["n"] for row in workshop.read("rows", "jsonl")] == [2, 2, 1]
    assert reasons(workshop) == [(2, "wrong-type", "column copy: expected int64, found a string 'last'")]


@pytest.mark.parametrize("writes", ["jsonl", "parquet"])
@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_a_made_row_of_another_type_is_bad(workshop: Any, writes: str, batch_rows: int) -> None:
    """The types are those of the unit, whatever the size of batches."""
    workshop.rows("a", numbers(5, 6, 7, 8))
    manifest = body(
        "name: map, entry: 'HERE:text_at_seven'", writes=writes, parallelism=f"batch_rows: {batch_rows}"
    )
    outcome = workshop.run(manifest)
    assert outcome.counters == Counters(rows_in=4, rows_out=3, rejected=1)
    assert workshop.read("rows", writes) == [{"n": 5}, {"n": 6}, {"n": 8}]
    assert [each[:2] for each in reasons(workshop)] == [(3, "wrong-type")]


def test_times_make_a_column_of_a_table(workshop: Any) -> None:
    """What JSON has no form for goes into parquet as what it is."""
    workshop.rows("a", numbers(1, 2, 3))
    outcome = workshop.run(body("name: map, entry: 'HERE:with_time'", writes="parquet"))
    assert outcome.counters == Counters(rows_in=3, rows_out=2, rejected=1)
    assert [row["at"].day for row in workshop.read("rows")] == [2, 4]
    assert reasons(workshop) == [
        (2, "wrong-type", "column at: expected timestamp[us], found str"),
    ]


def test_numbers_of_numpy_are_numbers(workshop: Any) -> None:
    workshop.rows("a", numbers(1))
    workshop.run(body("name: map, entry: 'HERE:of_numpy'"))
    assert workshop.read("rows", "jsonl") == [{"n": 1, "pair": [0.5, 1], "vector": [0, 1]}]


@pytest.mark.parametrize(("entry", "kind"), [("not_a_number", "nan"), ("too_large", "integer-range")])
def test_a_number_that_has_no_place_in_the_output(workshop: Any, entry: str, kind: str) -> None:
    workshop.rows("a", numbers(1, 2))
    outcome = workshop.run(body(f"name: map, entry: 'HERE:{entry}'"))
    assert outcome.counters == Counters(rows_in=2, rows_out=1, rejected=1)
    assert [each[:2] for each in reasons(workshop)] == [(1, kind)]


def test_a_reject_after_a_batch_that_hid_what_it_left_out(workshop: Any) -> None:
    """odd_batch gives 1, 3, 7 of 1..7 without saying so; which of them is bad must still be known."""
    workshop.rows("a", [{"n": number, "text": 5 if number == 3 else "x"} for number in (1, 2)])
    workshop.rows("b", numbers(1, 2, 0, 3, 6, 7))
    outcome = workshop.run(
        body("name: map_batches, entry: 'HERE:odd_batch'", "name: map, entry: 'HERE:text_at_seven'")
    )
    assert outcome.counters == Counters(rows_in=8, rows_out=3, filtered=4, rejected=1)
    assert [row["n"] for row in workshop.read("rows", "jsonl")] == [1, 1, 3]
    assert [each[:2] for each in reasons(workshop)] == [(6, "wrong-type")]


def test_a_result_tells_what_became_of_its_rows(workshop: Any) -> None:
    workshop.rows("a", numbers(1, 4, 2, 3))
    outcome = workshop.run(
        body("name: map_batches, entry: 'HERE:refuse_batch'", "name: map, entry: 'HERE:double'")
    )
    assert outcome.counters == Counters(4, 2, 1, 1, {"seen": 1})
    assert [row["n"] for row in workshop.read("rows", "jsonl")] == [2, 6]
    assert reasons(workshop) == [(2, "rejected", "n is 4")]


def test_more_rows_than_a_batch_had(workshop: Any) -> None:
    workshop.rows("a", numbers(1, 2))
    with pytest.raises(RunError, match="gave 4 rows and 0 rejects for 2 rows"):
        workshop.run(body("name: map_batches, entry: 'HERE:twice_batch'"))


@pytest.mark.parametrize("reads", ["jsonl", "parquet"])
def test_a_missing_column_makes_the_rows_bad(workshop: Any, reads: str) -> None:
    """Or ends the run, where it takes no bad rows."""
    rows = numbers(1, 2)
    workshop.rows("a", rows) if reads == "jsonl" else parquet(workshop, "a", rows)
    manifest = body("name: count_words, column: body", reads=reads)
    assert workshop.run(manifest).counters == Counters(rows_in=2, rejected=2)
    assert {each[1] for each in reasons(workshop)} == {"missing-column"}
    with pytest.raises(RunError, match=r"expected a column 'body', found the columns n, text"):
        workshop.run(
            body("name: count_words, column: body", reads=reads, errors="fail"), out=workshop.root / "2"
        )


@pytest.mark.parametrize("writes", ["jsonl", "parquet"])
def test_a_column_that_only_some_rows_have_is_null_in_the_others(workshop: Any, writes: str) -> None:
    workshop.rows("a", [{"text": "a b"}, {"n": 1}, {"text": "c"}])
    workshop.run(body("name: count_words", writes=writes))
    assert [row["words"] for row in workshop.read("rows", writes)] == [2, None, 1]


def test_types_of_a_table_stay(workshop: Any) -> None:
    """A step that keeps rows must not widen their columns."""
    parquet(workshop, "a", numbers(1, 2, 3), n=pa.int16(), text=pa.large_string())
    workshop.run(
        body(
            "name: filter, entry: 'HERE:odd'",
            "name: normalize, lowercase: true",
            "name: keep_if, column: n, at_most: 2",
            reads="parquet",
            writes="parquet",
        )
    )
    schema = pq.read_schema(workshop.out / "rows/part-00000.parquet")
    assert (schema.field("n").type, schema.field("text").type) == (pa.int16(), pa.large_string())


def test_bad_lines_are_rejected_beside_bad_rows_in_the_order_of_the_file(workshop: Any) -> None:
    workshop.rows("a", [{"n": 0}, "{", {"n": 1}, {"n": 0}])
    outcome = workshop.run(body("name: map, entry: 'HERE:inverse'"))
    assert outcome.counters == Counters(rows_in=4, rows_out=1, rejected=3)
    assert [each[:2] for each in reasons(workshop)] == [(1, "failed"), (2, "not-json"), (4, "failed")]


def test_nothing_is_left_of_a_unit(workshop: Any) -> None:
    workshop.rows("a", numbers(1, 3))
    workshop.rows("b", numbers(2, 4))
    outcome = workshop.run(body("name: filter, entry: 'HERE:odd'", writes="parquet"))
    assert outcome.counters == Counters(4, 2, 2)
    assert [row["n"] for row in workshop.read("rows")] == [1, 3]


def test_two_processes_give_the_same_bytes(workshop: Any) -> None:
    """Entries are imported by the workers, and rejected rows come home."""
    for unit in range(4):
        workshop.rows(f"s{unit}", numbers(unit, *range(20)))
    chain = (
        "name: map, entry: 'HERE:inverse'",
        "name: map_batches, entry: 'HERE:double_batch'",
        "name: sample, fraction: 0.7",
        "name: hash, columns: [n, text]",
    )
    one = workshop.run(body(*chain))
    here = {path.name: path.read_bytes() for path in sorted(workshop.out.rglob("*.jsonl"))}
    there_root = workshop.root / "there"
    two = workshop.run(body(*chain, parallelism="backend: processes, workers: 2"), out=there_root)
    assert {path.name: path.read_bytes() for path in sorted(there_root.rglob("*.jsonl"))} == here
    assert one.counters == two.counters
    assert one.counters.rejected == 5


def test_workers_do_the_work(workshop: Any) -> None:
    workshop.rows("a", numbers(1))
    workshop.rows("b", numbers(2))
    workshop.run(body("name: map, entry: 'HERE:process_id'", parallelism="backend: processes, workers: 2"))
    assert os.getpid() not in {row["process"] for row in workshop.read("rows", "jsonl")}


def test_too_little_memory_is_no_fault_of_a_row_and_the_finished_units_are_kept(
    workshop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run goes on where this one was, unless another function is to be called."""
    scarce = tmp_path / "scarce"
    scarce.touch()
    monkeypatch.setenv("TREADLE_TEST_SCARCE", str(scarce))
    for name, value in (("a", 1), ("b", 2), ("c", 3)):
        workshop.rows(name, numbers(value))
    manifest = body("name: map, entry: 'HERE:needs_memory'", more="checkpoint: {}")
    with pytest.raises(MemoryError):
        workshop.run(manifest)
    scarce.unlink()
    outcome = workshop.run(manifest)
    assert [each.resumed for each in outcome.units] == [True, False, False]
    assert [row["n"] for row in workshop.read("rows", "jsonl")] == [1, 2, 3]


def test_another_entry_takes_nothing_of_an_earlier_run(
    workshop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scarce = tmp_path / "scarce"
    scarce.touch()
    monkeypatch.setenv("TREADLE_TEST_SCARCE", str(scarce))
    workshop.rows("a", numbers(1))
    workshop.rows("b", numbers(2))
    manifest = body("name: map, entry: 'HERE:needs_memory'", more="checkpoint: {}")
    with pytest.raises(MemoryError):
        workshop.run(manifest)
    outcome = workshop.run(manifest.replace("needs_memory", "double"))
    assert [each.resumed for each in outcome.units] == [False, False]
    assert [row["n"] for row in workshop.read("rows", "jsonl")] == [2, 4]


def test_every_problem_of_the_list_is_placed(workshop: Any) -> None:
    found = problems_of(
        workshop,
        body(
            "name: mapp, entry: x",
            "name: map, entri: 'HERE:double'",
            "name: replace, column: text, pattern: '(a'",
            "name: length, min: -1",
            "name: embed",
            "name: keep_if, column: n",
        ),
    )
    assert any(each.startswith("transforms[0].name: expected one of") and "'map'" in each for each in found)
    assert "transforms[1].entry: expected a value, found nothing" in found
    assert "transforms[1].entri: expected one of entry, many, found 'entri'; did you mean 'entry'?" in found
    assert any(
        each.startswith("transforms[2].pattern: expected valid settings, found an error:") for each in found
    )
    assert "transforms[3].min: expected valid settings, found an error: must be at least 0, got -1" in found
    assert any(
        each.startswith("transforms[4].name: expected a transform without side inputs") for each in found
    )
    assert any(each.startswith("transforms[5]: expected valid settings") for each in found)
    assert len(found) == 7


NOWHERE = (
    "transforms[1].entry: expected a module that can be imported, found 'nowhere.at:all': "
    "ModuleNotFoundError: No module named 'nowhere' (for a module in the working folder set PYTHONPATH=.)"
)


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            body("name: map, entry: 'HERE:dubble'", "name: filter, entry: nowhere.at:all"),
            [
                f"transforms[0].entry: expected a callable of {HERE}, found 'dubble'; did you mean 'double'?",
                NOWHERE,
            ],
        ),
        (body(), ["transforms: expected a list of transforms, which transform needs, found nothing"]),
        (
            body("name: count_words").replace("rows: {b", "other: {b"),
            [
                "outputs.rows: expected a dataset, which transform needs, found nothing",
                "outputs.other: expected only rows for transform, found 'other'",
            ],
        ),
        (
            body("name: count_words").replace(
                "anything:", "more: {backend: jsonl, path: x}\n          anything:"
            ),
            ["inputs: expected one input, found anything, more"],
        ),
    ],
)
def test_what_is_missing_or_unknown_is_placed(workshop: Any, manifest: str, expected: list[str]) -> None:
    assert problems_of(workshop, manifest) == expected
