"""Run types `mapping` and `reduce`: exact sums over many files, one file out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.domain import Counters
from treadle.errors import ManifestError, RunError

MAPPING = """
    run: {type: mapping}
    inputs: {registry: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    mapping: {min_count: 2, max_terms: 3}
    outputs: {mapping: {backend: parquet, path: mapping}}
"""
REDUCE = """
    run: {type: reduce}
    inputs: {rows: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    reduce: {keys: [key, sort], sums: [n]}
    outputs: {sums: {backend: parquet, path: sums}}
"""


def term(name: str, count: int) -> dict[str, object]:
    return {"term": name, "count": count, "documents": 1}


def test_a_mapping_of_many_registries(workshop: Any) -> None:
    """Ids by count then term; terms left out are counted, not forgotten."""
    workshop.rows("a", [term("sea", 3), term("ship", 1), term("rare", 1)])
    workshop.rows("b", [term("sea", 1), term("ship", 3), term("mast", 2), term("deck", 2)])
    outcome = workshop.run(MAPPING)
    assert workshop.read("mapping") == [
        {"term_id": 0, "term": "sea", "count": 4, "documents": 2},
        {"term_id": 1, "term": "ship", "count": 4, "documents": 2},
        {"term_id": 2, "term": "deck", "count": 2, "documents": 1},
    ]
    assert outcome.counters == Counters(7, 7, extra={"terms": 3, "terms_dropped": 2})
    assert outcome.outputs["mapping"].rows == 3
    assert [each.counters["rows_in"] for each in workshop.sink.events if hasattr(each, "unit")] == [3, 4]


def test_a_mapping_of_nothing_is_an_empty_mapping(workshop: Any) -> None:
    """A corpus without a term is no crash; the file says so with its columns."""
    workshop.rows("a", [])
    outcome = workshop.run(MAPPING)
    assert outcome.outputs["mapping"].rows == 0
    assert list(outcome.outputs["mapping"].columns) == ["term_id", "term", "count", "documents"]


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
    ("rows", "said"),
    [
        ([{"key": "a", "n": 1}], r"a\.jsonl, lines 1 to 1: no column 'sort'"),
        (
            [{"key": "a", "sort": 1, "n": "x"}],
            r"a\.jsonl, lines 1 to 1: column 'n' is string, expected a number",
        ),
    ],
)
def test_columns_that_cannot_be_summed(workshop: Any, rows: list[object], said: str) -> None:
    workshop.rows("a", rows)
    with pytest.raises(RunError, match=said):
        workshop.run(REDUCE)
    assert workshop.visible() == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (REDUCE.replace("reduce: {", "cluster: {clusters: 2} #"), "reduce"),
        (REDUCE.replace("sums: [n]", "sums: [key]"), "reduce"),
        (REDUCE.replace("outputs: {sums", "outputs: {sum"), "outputs.sum"),
        (REDUCE.replace("inputs: {rows", "inputs: {row"), "inputs.row"),
        (MAPPING.replace("inputs: {registry", "inputs: {rows"), "inputs.registry"),
        (MAPPING.replace("outputs: {mapping", "outputs: {rows"), "outputs.mapping"),
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
    with pytest.raises(RunError, match=r"b.jsonl, lines 1 to 1: .*key has incompatible types"):
        workshop.run(REDUCE)


def test_a_registry_with_fractions_is_the_fault_of_the_rows(workshop: Any) -> None:
    workshop.rows("a", [{"term": "sea", "count": 2.5, "documents": 1}])
    with pytest.raises(RunError, match="counts as integers"):
        workshop.run(MAPPING)
