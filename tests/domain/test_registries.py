"""From tokens to one numbering: registries, the mapping, sums by key, and the growth curve."""

from collections import Counter, defaultdict
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.domain.growth import growth_curve, heaps_fit
from treadle.domain.mapping import MAPPING_SCHEMA, number_terms
from treadle.domain.reduce import SumFold
from treadle.domain.term_registry import TermRegistry
from treadle.errors import ArgumentError

terms = st.text(alphabet="abcé", min_size=1, max_size=2)
documents = st.lists(st.lists(terms, max_size=8), max_size=12)


def build_mapping(registries: list[pa.Table], **limits: Any) -> pa.Table:
    """The mapping of some registries, by way of plain sums."""
    totals = SumFold(("term",), ("count", "documents"))
    for registry in registries:
        totals.add(registry)
    return number_terms(totals.result(), **limits)


def registry_of(texts: list[list[str]], groups: list[int] | None = None) -> TermRegistry:
    registry = TermRegistry(pa.int64() if groups else None)
    for at, text in enumerate(texts):
        registry.add(text, groups[at] if groups else None)
    return registry


@given(documents)
def test_a_registry_counts_terms_and_documents(texts: list[list[str]]) -> None:
    counts = Counter(term for text in texts for term in text)
    holding = Counter(term for text in texts for term in set(text))
    registry = registry_of(texts)
    rows = registry.to_table().to_pylist()
    assert rows == [
        {"term": term, "count": counts[term], "documents": holding[term]} for term in sorted(counts)
    ]
    assert registry.tokens == counts.total()


@given(documents, st.integers(0, 12))
def test_registries_add_up(texts: list[list[str]], cut: int) -> None:
    """Batches and units each have their own; the sum must be what one registry of all would say."""
    groups = [1790 + at % 3 for at in range(len(texts))]
    parts = registry_of(texts[:cut], groups[:cut] or None) + registry_of(texts[cut:], groups[cut:] or None)
    if texts:
        assert parts.to_table() == registry_of(texts, groups).to_table()


def test_groups_are_a_sorted_column() -> None:
    registry = registry_of([["b", "a"], ["a"]], [1801, 1790])
    assert registry.to_table().select(["term", "group", "count"]).to_pylist() == [
        {"term": "a", "group": 1790, "count": 1},
        {"term": "a", "group": 1801, "count": 1},
        {"term": "b", "group": 1801, "count": 1},
    ]


@given(documents, st.randoms(use_true_random=False), st.integers(1, 3))
def test_ids_do_not_depend_on_number_or_order_of_registries(
    texts: list[list[str]],
    random: Random,
    min_count: int,
) -> None:
    """A corpus cut into other shards, or read by more workers, must give the same ids."""
    whole = build_mapping([registry_of(texts).to_table()], min_count=min_count)
    parts = [registry_of([text]).to_table() for text in texts]
    random.shuffle(parts)
    assert build_mapping(parts, min_count=min_count) == whole
    assert whole["term_id"].to_pylist() == list(range(whole.num_rows))
    counts = Counter(term for text in texts for term in text)
    wanted = sorted((-count, term) for term, count in counts.items() if count >= min_count)
    assert list(zip(whole["count"].to_pylist(), whole["term"].to_pylist(), strict=True)) == [
        (-count, term) for count, term in wanted
    ]


def test_limits() -> None:
    table = registry_of([["a", "b", "b", "c", "c", "c"]]).to_table()
    assert build_mapping([table], max_terms=2)["term"].to_pylist() == ["c", "b"]
    assert build_mapping([]).schema == build_mapping([table]).schema == MAPPING_SCHEMA
    with pytest.raises(ArgumentError, match="at least 1, got 0"):
        build_mapping([table], min_count=0)
    with pytest.raises(ArgumentError, match="expected a column 'documents'"):
        build_mapping([table.drop_columns(["documents"])])


rows = st.lists(
    st.tuples(
        st.sampled_from(["x", "y", None]),
        st.integers(0, 3),
        st.integers(-(2**40), 2**40),
        st.none() | st.integers(0, 9),
    ),
    max_size=30,
)


@given(st.lists(rows, min_size=1, max_size=4), st.sets(st.integers(0, 3)))
def test_sums_are_those_of_a_dictionary(
    batches: list[list[tuple[str | None, int, int, int | None]]], looks: set[int]
) -> None:
    """Also when partial tables were merged in between, which a look at the result does."""
    fold = SumFold(("k", "g"), ("n", "m"))
    expected: defaultdict[tuple[str | None, int], list[int]] = defaultdict(lambda: [0, 0])
    for at, batch in enumerate(batches):
        columns = list(zip(*batch, strict=True)) or [(), (), (), ()]
        kinds = (pa.string(), pa.int64(), pa.int64(), pa.int32())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        fold.add(pa.RecordBatch.from_arrays(arrays, names=["k", "g", "n", "m"]))
        for key, group, n, m in batch:
            expected[key, group][0] += n
            expected[key, group][1] += m or 0
        if at in looks:
            fold.result()
    found = [tuple(row.values()) for row in fold.result().to_pylist()]
    order = sorted(expected, key=lambda each: (each[0] is None, each[0] or "", each[1]))
    assert found == [(*key, *expected[key]) for key in order]
    assert fold.result().column_names == ["k", "g", "n", "m"]


def test_memory_is_bounded_by_the_keys() -> None:
    fold = SumFold(("k",), ("n",))
    batch = pa.RecordBatch.from_pydict({"k": list(range(1000)), "n": [1] * 1000})
    for _ in range(500):
        fold.add(batch)
        assert fold._waiting <= 101_000
    assert set(fold.result()["n"].to_pylist()) == {500}


def test_floats_add_in_order_and_wrong_columns_are_named() -> None:
    fold = SumFold(["k"], ["x"])
    fold.add(pa.table({"k": ["a", "a", "b"], "x": [0.5, 0.25, None], "other": [1, 2, 3]}))
    assert fold.result().to_pydict() == {"k": ["a", "b"], "x": [0.75, 0.0]}
    with pytest.raises(ArgumentError, match="'x' is string, expected a number"):
        fold.add(pa.table({"k": ["a"], "x": ["1"]}))
    with pytest.raises(ArgumentError, match="expected a column 'x'"):
        fold.add(pa.table({"k": ["a"]}))
    untyped, typed = pa.table({"k": pa.nulls(2), "x": [1, 2]}), pa.table({"k": ["a"], "x": [2**62]})
    fold = SumFold(["k"], ["x"])
    for part in (untyped, typed):
        fold.add(part)
    assert fold.result().to_pydict() == {"k": ["a", None], "x": [2**62, 3]}
    fold.add(typed)
    with pytest.raises(ArgumentError, match="'x' adds up to 9"):
        fold.result()
    with pytest.raises(ArgumentError, match="distinct"):
        SumFold(["k"], ["k"])


@given(documents.filter(lambda texts: any(texts)), st.permutations(range(12)))
def test_growth_is_what_reading_the_groups_in_order_would_count(
    texts: list[list[str]], years: list[int]
) -> None:
    groups = [1790 + year // 2 for year in years[: len(texts)]]
    table = registry_of(texts, groups).to_table()
    seen: Counter[str] = Counter()
    expected = []
    for group in sorted({g for g, text in zip(groups, texts, strict=True) if text}):
        seen.update(term for g, text in zip(groups, texts, strict=True) if g == group for term in text)
        hapax = sum(count == 1 for count in seen.values())
        expected.append({"group": group, "tokens": seen.total(), "types": len(seen), "hapax": hapax})
    assert growth_curve(table).to_pylist() == expected


def test_heaps_law_is_found_again() -> None:
    tokens = np.array([1e3, 1e4, 1e5, 1e6])
    fit = heaps_fit(tokens, 12 * tokens**0.55)
    assert fit == pytest.approx((12, 0.55))
    with pytest.raises(ArgumentError, match="two or more points"):
        heaps_fit([10], [5])


def test_groups_that_were_null_at_first_get_their_type() -> None:
    """The rows of a batch without any group tell nothing of the type of those to come."""
    later = TermRegistry(pa.string())
    later.add(["a"], "x")
    for total in (TermRegistry(pa.null()) + later, later + TermRegistry(pa.null())):
        assert total.to_table().to_pylist() == [{"term": "a", "group": "x", "count": 1, "documents": 1}]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"k": [1], "n": [1]}, {"k": ["x"], "n": [1]}, "k has incompatible types"),
        ({"k": [[1]], "n": [1]}, None, "expected single values as keys"),
        ({"k": ["a"], "n": [2**60 + 1]}, {"k": ["a"], "n": [0.5]}, "column 'n' has whole numbers"),
    ],
)
def test_rows_that_do_not_go_together_are_refused(first: Any, second: Any, said: str) -> None:
    """Files of one dataset drift; what Arrow says of it has to come as an error of the rows."""
    fold = SumFold(("k",), ("n",))
    with pytest.raises(ArgumentError, match=said):
        for rows in (first, second):
            fold.add(pa.table(rows))
        fold.result()


def test_sums_of_integers_and_fractions_and_of_dictionaries() -> None:
    """Types that Arrow sums alone but not together."""
    fold = SumFold(("n_sum",), ("n",))
    fold.add(pa.table({"n_sum": pa.array(["a", "b"]).dictionary_encode(), "n": [1, 2]}))
    fold.add(pa.table({"n_sum": ["a"], "n": [0.5]}))
    fold.add(pa.table({"n_sum": pa.nulls(1), "n": pa.nulls(1)}))
    assert fold.result().to_pydict() == {"n_sum": ["a", "b", None], "n": [1.5, 2.0, 0.0]}


def test_null_is_no_term() -> None:
    """An id for it would give it a vector, and every missing token with it."""
    registry = {"term": ["a", None], "count": [1, 5], "documents": [1, 1]}
    assert build_mapping([pa.table(registry)])["term"].to_pylist() == ["a"]
    assert build_mapping([pa.table({**registry, "term": pa.nulls(2)})]).num_rows == 0


def test_a_registry_with_fractions_is_refused() -> None:
    registry = {"term": ["a"], "count": [1.5], "documents": [1]}
    with pytest.raises(ArgumentError, match="counts as integers"):
        build_mapping([pa.table(registry)])


def test_a_registry_of_numbers_is_refused() -> None:
    """Read as text they would be terms that no text has."""
    with pytest.raises(ArgumentError, match="terms as text, got int64"):
        build_mapping([pa.table({"term": [1], "count": [1], "documents": [1]})])
