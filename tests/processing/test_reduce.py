"""Run type `reduce`: exact aggregates over many files, workers and buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.domain.result import Counters
from treadle.errors import BadRowError, ManifestError, RunError

REDUCE = """
    run: {type: reduce}
    inputs: {rows: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    reduce: {keys: [key, sort], sums: [n]}
    outputs: {sums: {backend: parquet, path: sums}}
"""


@given(
    shards=st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 2), st.none() | st.integers(-5, 5)),
            max_size=9,
        ),
        min_size=1,
        max_size=4,
    ),
    batch_rows=st.integers(1, 4),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sums_are_those_of_a_plain_count(
    new_workshop: Callable[[], Any], shards: list[list[tuple[str, int, int | None]]], batch_rows: int
) -> None:
    """However the rows are cut into files and batches."""
    workshop = new_workshop()
    expected: Counter[tuple[str, int]] = Counter()
    for index, rows in enumerate(shards):
        workshop.rows(f"shard-{index}", [{"key": key, "sort": sort, "n": n} for key, sort, n in rows])
        for key, sort, n in rows:
            expected[key, sort] += n or 0
    outcome = workshop.run(REDUCE + f"    parallelism: {{batch_rows: {batch_rows}}}\n")
    total = sum(len(rows) for rows in shards)
    assert outcome.counters == Counters(total, total, extra={"groups": len(expected)})
    found = workshop.read("sums") if expected else []
    assert found == [{"key": key, "sort": sort, "n": expected[key, sort]} for key, sort in sorted(expected)]


def test_bad_rows_of_a_fold_are_rejected_with_their_lines(workshop: Any) -> None:
    """The same rules as for any other run type."""
    path = workshop.rows("a", [{"key": "a", "sort": 1, "n": 1}, "torn", {"key": "a", "sort": 1, "n": 2}])
    outcome = workshop.run(REDUCE + "    errors: {on_bad_row: quarantine}\n")
    assert outcome.counters == Counters(3, 2, rejected=1, extra={"groups": 1})
    assert [(each["source"], each["line"]) for each in workshop.quarantined()] == [(str(path), 2)]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (REDUCE.replace("reduce: {", "cluster: {clusters: 2} #"), "reduce"),
        (REDUCE.replace("sums: [n]", "sums: [key]"), "reduce"),
        (REDUCE.replace("sums: [n]", "sums: [n, n]"), "reduce"),
        (REDUCE.replace("sums: [n]", "aggregates: {n: {function: mean}}"), "reduce"),
        (REDUCE.replace('*.jsonl"', '*.jsonl", columns: [key, n]'), "inputs.rows.columns"),
        (REDUCE.replace("outputs: {sums", "outputs: {sum"), "outputs.sum"),
        (REDUCE.replace("inputs: {rows", "inputs: {row"), "inputs.row"),
    ],
)
def test_what_is_missing_or_unknown_is_placed(workshop: Any, body: str, field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        workshop.run(body)
    assert field in [each.field for each in caught.value.problems]
    assert all(each.line for each in caught.value.problems)


def test_a_sum_that_does_not_fit_in_the_end_is_the_fault_of_the_rows(workshop: Any) -> None:
    """Not of the request: no batch alone is too large, so it shows at the last merge."""
    for name in ("a", "b"):
        workshop.rows(name, [{"key": "k", "sort": 1, "n": 2**62}])
    with pytest.raises(RunError, match=r"in/\*.jsonl: column 'n' adds up to 9.22e\+18"):
        workshop.run(REDUCE)
    assert workshop.visible() == []


def test_drift_between_files_names_the_file(workshop: Any) -> None:
    workshop.rows("a", [{"key": 1, "sort": 1, "n": 1}])
    workshop.rows("b", [{"key": "x", "sort": 1, "n": 1}])
    with pytest.raises(RunError, match=r"b.jsonl: .*key has incompatible types"):
        workshop.run(REDUCE)


SPREAD = REDUCE.replace(
    "sums: [n]",
    "sums: [n], aggregates: {rows: {function: count}, low: {function: min, column: n}, "
    "all: {function: list, column: n}}, buckets: BUCKETS, memory_rows: MEMORY",
)


def spread(buckets: int | None, memory_rows: int, workers: str = "") -> str:
    body = SPREAD.replace("BUCKETS", "null" if buckets is None else str(buckets)).replace(
        "MEMORY", str(memory_rows)
    )
    return body + (f"    parallelism: {{{workers}}}\n" if workers else "")


def skewed(shard: int) -> list[dict[str, object]]:
    """Half of the rows have one key; there is null, and text beyond ASCII."""
    keys = ["sea", None, *(f"é{at}" for at in range(40))]
    picks = [keys[(7 * at + shard) % 42] if at % 2 else "sea" for at in range(300)]
    return [{"key": key, "sort": at % 2, "n": at} for at, key in enumerate(picks)]


@pytest.mark.parametrize(
    ("buckets", "memory_rows"), [(1, 1000), (7, 1000), (1, 10), (7, 10), (None, 10), (None, 1000)]
)
def test_aggregates_are_the_same_however_they_were_spread(
    workshop: Any, buckets: int | None, memory_rows: int
) -> None:
    """Spilled or not, in one bucket or in many: what a dictionary says."""
    expected: dict[tuple[Any, Any], list[int]] = {}
    for shard in range(3):
        workshop.rows(f"shard-{shard}", skewed(shard))
        for row in skewed(shard):
            expected.setdefault((row["key"], row["sort"]), []).append(int(str(row["n"])))
    outcome = workshop.run(spread(buckets, memory_rows))
    found = {(row["key"], row["sort"]): tuple(row.values())[2:] for row in workshop.read("sums")}
    assert found == {key: (sum(all_of), len(all_of), min(all_of), all_of) for key, all_of in expected.items()}
    assert outcome.counters == Counters(900, 900, extra={"groups": len(expected)})
    files = outcome.outputs["sums"].files
    assert len(files) == buckets if buckets else (len(files) > 1) == (memory_rows < len(expected))


def test_each_file_is_sorted_by_keys(workshop: Any) -> None:
    workshop.rows("a", skewed(0))
    workshop.run(spread(3, 10))
    for path in sorted((workshop.out / "sums").glob("part-*.parquet")):
        rows = pq.read_table(path).to_pylist()
        keys = [(row["key"] is None, row["key"] or "", row["sort"]) for row in rows]
        assert keys == sorted(keys)


@pytest.mark.parametrize(
    "workers", ["backend: processes, workers: 1", "backend: processes, workers: 2, batch_rows: 17"]
)
def test_files_are_the_same_bytes_on_any_number_of_workers(workshop: Any, workers: str) -> None:
    for shard in range(4):
        workshop.rows(f"shard-{shard}", [{**row, "n": 0.1 * int(str(row["n"]))} for row in skewed(shard)])
    here = workshop.run(spread(5, 16))
    there = workshop.run(spread(5, 16, workers), out=workshop.root / "there")
    assert there.outputs["sums"].files == here.outputs["sums"].files
    assert there.counters == here.counters


def test_rows_without_a_key_are_bad_unless_missing_means_null(workshop: Any) -> None:
    workshop.rows("a", [{"key": "a", "sort": 1, "n": 1}, {"key": "a", "n": 2}])
    outcome = workshop.run(REDUCE + "    errors: {on_bad_row: quarantine}\n")
    assert outcome.counters == Counters(2, 1, rejected=1, extra={"groups": 1})
    lenient = REDUCE.replace('*.jsonl"', '*.jsonl", missing: "null"')
    outcome = workshop.run(lenient, out=workshop.root / "lenient")
    assert outcome.counters == Counters(2, 2, extra={"groups": 2})


def test_reduce_merge_is_the_same_run_type(workshop: Any) -> None:
    workshop.rows("a", [{"key": "a", "sort": 1, "n": 1}])
    workshop.run(REDUCE.replace("type: reduce", "type: reduce_merge"))
    assert workshop.read("sums") == [{"key": "a", "sort": 1, "n": 1}]


def test_what_cannot_be_folded_is_a_bad_row(workshop: Any) -> None:
    """A file of another make must not cost the others; each of its rows has its place and its reason."""
    workshop.rows("a", [{"key": "a", "sort": 1, "n": 1}])
    path = workshop.rows("b", [{"key": "a", "sort": 1, "n": "2"}, {"key": "a", "sort": 1, "n": None}])
    workshop.rows("c", [{"key": "a", "sort": [1], "n": 2}])
    outcome = workshop.run(REDUCE + "    errors: {on_bad_row: quarantine}\n")
    assert outcome.counters == Counters(4, 2, rejected=2, extra={"groups": 1})
    assert workshop.read("sums") == [{"key": "a", "sort": 1, "n": 1}]
    first, second = workshop.quarantined()
    assert (first["source"], first["line"], first["kind"]) == (str(path), 1, "wrong-type")
    assert first["reason"] == "column 'n' is string, expected a number to sum"
    assert second["reason"].endswith("expected single values as keys")
    with pytest.raises(BadRowError, match=r"b\.jsonl:1: column 'n' is string, expected a number to sum"):
        workshop.run(REDUCE, out=workshop.root / "again")


def test_sums_of_whole_numbers_and_fractions_that_cannot_meet_name_file_and_column(workshop: Any) -> None:
    path = workshop.rows("a", [{"key": "a", "sort": 1, "n": 2**62 + 1}])
    workshop.rows("b", [{"key": "a", "sort": 1, "n": 0.5}])
    with pytest.raises(RunError, match=rf"^{path}: column 'n' has whole numbers in some rows and fractions"):
        workshop.run(REDUCE)


def test_a_key_beyond_64_bits_is_a_bad_row(workshop: Any) -> None:
    (workshop.root / "in").mkdir()
    table = pa.table({"key": pa.array([1, 2**64 - 1], pa.uint64()), "sort": [1, 1], "n": [1, 1]})
    pq.write_table(table, workshop.root / "in/a.parquet")
    body = REDUCE.replace("backend: jsonl", "backend: parquet").replace("*.jsonl", "*.parquet")
    outcome = workshop.run(body + "    errors: {on_bad_row: quarantine}\n")
    assert outcome.counters == Counters(2, 1, rejected=1, extra={"groups": 1})
    (bad,) = workshop.quarantined()
    assert bad["reason"] == "column key: expected int64, found uint64 18446744073709551615"
