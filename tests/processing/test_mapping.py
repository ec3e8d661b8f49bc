"""Run type `mapping`: one id a term, whatever the number of registries, workers and buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.domain import Counters
from treadle.errors import ManifestError, RunError
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


def test_a_registry_with_fractions_is_the_fault_of_the_rows(workshop: Any) -> None:
    workshop.rows("a", [{"term": "sea", "count": 2.5, "documents": 1}])
    with pytest.raises(RunError, match="counts as integers"):
        workshop.run(MAPPING)
