"""Run type `mapping`: one id a term, whatever the number of registries, workers and buckets."""

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
from treadle.errors import BadRowError, ManifestError
from treadle.processing.patterns import mapping

MAPPING = """
    run: {type: mapping}
    inputs: {registry: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    mapping: {min_count: 2, max_terms: 3}
    outputs: {mapping: {backend: parquet, path: mapping}}
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
        st.lists(st.tuples(st.sampled_from(["a", "é", "sea", "\U0001f6a2"]), st.integers(1, 9)), max_size=6),
        min_size=1,
        max_size=4,
    ),
    memory_rows=st.sampled_from([1, 3, 1000]),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ids_do_not_depend_on_how_the_registry_is_cut(
    new_workshop: Callable[[], Any], shards: list[list[tuple[str, int]]], memory_rows: int
) -> None:
    """Nor on whether the terms were merged in one go or bucket by bucket."""
    workshop = new_workshop()
    counts: Counter[str] = Counter()
    for index, rows in enumerate(shards):
        workshop.rows(f"shard-{index}", [term(name, count) for name, count in rows])
        for name, count in rows:
            counts[name] += count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "MEMORY_ROWS", memory_rows)
        workshop.run(MAPPING.replace("min_count: 2, max_terms: 3", "min_count: 1"))
    found = [(each["term"], each["count"]) for each in workshop.read("mapping")]
    assert found == sorted(counts.items(), key=lambda each: (-each[1], each[0]))


@pytest.mark.parametrize("backend", ["inprocess", "processes"])
def test_a_mapping_is_the_same_bytes_on_every_backend(workshop: Any, backend: str) -> None:
    for at in range(3):
        workshop.rows(f"shard-{at}", [term(f"term-{number % 50:02d}", number) for number in range(100)])
    outcome = workshop.run(MAPPING)
    body = MAPPING + f"    parallelism: {{backend: {backend}, workers: 2}}\n"
    again = workshop.run(body, out=workshop.root / "again")
    assert again.outputs["mapping"].files == outcome.outputs["mapping"].files
    assert again.counters == outcome.counters


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (MAPPING.replace("inputs: {registry", "inputs: {rows"), "inputs.registry"),
        (MAPPING.replace("outputs: {mapping", "outputs: {rows"), "outputs.mapping"),
        (MAPPING.replace('*.jsonl"', '*.jsonl", columns: [term, count]'), "inputs.registry.columns"),
    ],
)
def test_what_is_missing_or_unknown_is_placed(workshop: Any, body: str, field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        workshop.run(body)
    assert field in [each.field for each in caught.value.problems]
    assert all(each.line for each in caught.value.problems)


def odd(workshop: Any) -> str:
    """A registry of large counts, and one with counts that are none, in every way; the path of that one."""
    workshop.rows("a", [term("sea", 2**62), term("ship", 3)])
    rows = [term("sea", 1), {"term": "sea", "count": 1.5, "documents": 1}, term("ship", 2)]
    rows += [{"term": "ship", "count": "9", "documents": 1}, {"term": 7, "count": 9, "documents": 1}]
    return str(workshop.rows("b", rows))


def test_a_count_that_is_no_whole_number_is_a_bad_row(workshop: Any) -> None:
    """Large counts beside it, in its file or another, stay exact; one shard does not cost the others."""
    path = odd(workshop)
    outcome = workshop.run(MAPPING + "    errors: {on_bad_row: quarantine}\n")
    assert [(each["term"], each["count"]) for each in workshop.read("mapping")] == [
        ("sea", 2**62 + 1),
        ("ship", 5),
    ]
    assert outcome.counters == Counters(7, 4, rejected=3, extra={"terms": 2, "terms_dropped": 0})
    found = [(each["source"], each["line"], each["kind"]) for each in workshop.quarantined()]
    assert found == [(path, line, "wrong-type") for line in (2, 4, 5)]
    assert workshop.quarantined()[0]["reason"] == "column count: expected int64, found a number 1.5"


def test_a_count_that_is_no_whole_number_fails_a_run_at_its_line(workshop: Any) -> None:
    path = odd(workshop)
    with pytest.raises(BadRowError, match=r"column count: expected int64, found a number 1\.5") as caught:
        workshop.run(MAPPING)
    assert (caught.value.source, caught.value.line) == (path, 2)


def test_a_registry_of_typed_files_is_held_to_whole_numbers_too(workshop: Any) -> None:
    """Fractions that are whole are counts, whatever the type of their column; others are bad rows."""
    folder = workshop.root / "in"
    folder.mkdir()
    table = {"term": pa.array(["sea", "ship", None]).dictionary_encode(), "count": [2.0, 2.5, 1.0]}
    pq.write_table(pa.table({**table, "documents": pa.array([1, 1, 1], pa.uint64())}), folder / "a.parquet")
    body = MAPPING.replace("backend: jsonl", "backend: parquet").replace("*.jsonl", "*.parquet")
    outcome = workshop.run(body + "    errors: {on_bad_row: quarantine}\n")
    assert [(each["term"], each["count"]) for each in workshop.read("mapping")] == [("sea", 2)]
    assert outcome.counters.rejected == 1
    assert workshop.quarantined()[0]["reason"] == "column count: expected int64, found double 2.5"


def test_a_registry_may_be_csv(workshop: Any) -> None:
    (workshop.root / "in").mkdir()
    (workshop.root / "in/a.csv").write_text("term,count,documents\nsea,2,1\nship,2.5,1\n")
    body = MAPPING.replace("backend: jsonl", "backend: csv").replace("*.jsonl", "*.csv")
    outcome = workshop.run(body + "    errors: {on_bad_row: skip}\n")
    assert [(each["term"], each["count"]) for each in workshop.read("mapping")] == [("sea", 2)]
    assert outcome.counters.rejected == 1
