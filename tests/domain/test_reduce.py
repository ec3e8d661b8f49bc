"""Aggregates by key: exactly those of a plain dictionary, however the rows are cut and merged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.domain.grouping import Aggregate, Grouping
from treadle.domain.key_hash import buckets_of, key_hashes
from treadle.domain.reduce import GroupFold
from treadle.errors import ArgumentError

ALL = Grouping(
    ("k", "g"),
    {
        "rows": Aggregate("count"),
        "some": Aggregate("count", "n"),
        "total": Aggregate("sum", "n"),
        "low": Aggregate("min", "n"),
        "high": Aggregate("max", "t"),
        "average": Aggregate("mean", "n"),
        "all": Aggregate("list", "t"),
    },
)
FIELDS: dict[str, pa.DataType] = {"k": pa.string(), "g": pa.int64(), "n": pa.int64(), "t": pa.string()}
SCHEMA = pa.schema(FIELDS)

Row = tuple[str | None, int | None, int | None, str | None]
rows_of = st.lists(
    st.tuples(
        st.sampled_from(["sea", "éa", "", "\U0001f6a2", None]),
        st.none() | st.integers(-1, 1),
        st.none() | st.integers(-(2**50), 2**50),
        st.none() | st.text("abé", max_size=2),
    ),
    max_size=40,
)


def expected(rows: list[Row]) -> dict[tuple[Any, Any], tuple[Any, ...]]:
    groups: defaultdict[tuple[Any, Any], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[0], row[1]].append(row)
    found = {}
    for key, members in groups.items():
        numbers = [each[2] for each in members if each[2] is not None]
        texts = [each[3] for each in members if each[3] is not None]
        found[key] = (
            len(members),
            len(numbers),
            sum(numbers),
            min(numbers, default=None),
            max(texts, default=None),
            sum(numbers) / len(numbers) if numbers else None,
            [each[3] for each in members],
        )
    return found


def cut(rows: list[Row], at: list[int]) -> Iterator[pa.Table]:
    places = sorted({0, len(rows), *(each % (len(rows) + 1) for each in at)})
    for start, end in pairwise(places):
        columns = list(zip(*rows[start:end], strict=True))
        yield pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def as_dict(table: pa.Table) -> dict[tuple[Any, Any], tuple[Any, ...]]:
    return {tuple(row.values())[:2]: tuple(row.values())[2:] for row in table.to_pylist()}


@given(rows_of, st.lists(st.integers(0, 40), max_size=5), st.integers(1, 50))
def test_all_aggregates_are_those_of_a_dictionary(rows: list[Row], at: list[int], chunk: int) -> None:
    fold = GroupFold(ALL, chunk_rows=chunk)
    for table in cut(rows, at):
        fold.add(table)
    found = fold.result()
    assert as_dict(found) == expected(rows)
    keys = [(row["k"] is None, row["k"] or "", row["g"] is None, row["g"] or 0) for row in found.to_pylist()]
    assert keys == sorted(keys)


@given(rows_of, st.lists(st.integers(0, 40), max_size=6), st.integers(1, 7))
def test_partials_of_parts_merge_to_those_of_the_whole(rows: list[Row], at: list[int], buckets: int) -> None:
    """Unit by unit, spread over buckets by the hash of the key, each bucket merged alone."""
    merged = [GroupFold(ALL) for _ in range(buckets)]
    for table in cut(rows, at):
        fold = GroupFold(ALL)
        fold.add(table)
        partials = fold.partials()
        homes = buckets_of(key_hashes([partials["k0"], partials["k1"]]), buckets)
        for bucket, each in enumerate(merged):
            each.add_partials(partials.filter(pa.array(homes == bucket)))
    found: dict[tuple[Any, Any], tuple[Any, ...]] = {}
    for each in merged:
        found |= as_dict(each.result())
    assert found == expected(rows)


def test_fractions_do_not_depend_on_how_rows_were_cut_into_batches() -> None:
    values = np.random.default_rng(3).normal(size=5000) * 10.0 ** np.arange(5000).__mod__(17)
    table = pa.table({"k": np.arange(5000) % 3, "x": values})
    found = []
    for size in (1, 7, 1024, 5000):
        fold = GroupFold(Grouping(("k",), {"x": Aggregate("sum", "x")}), chunk_rows=512)
        for start in range(0, 5000, size):
            fold.add(table.slice(start, size))
        found.append(fold.result())
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_beyond_64_bits_is_refused_and_one_that_just_fits_is_exact(sign: int) -> None:
    fold = GroupFold(Grouping(("k",), {"n": Aggregate("sum", "n")}))
    fold.add(pa.table({"k": ["a", "b", "a"], "n": [sign * (2**62), sign * (2**62), sign * (2**62 - 1)]}))
    assert fold.result().to_pydict() == {"k": ["a", "b"], "n": [sign * (2**63 - 1), sign * 2**62]}
    fold.add(pa.table({"k": ["a"], "n": [sign * 2]}))
    with pytest.raises(ArgumentError, match=r"column 'n' adds up to -?9.22e\+18, more than 64 bits hold"):
        fold.result()


@pytest.mark.parametrize("values", [[1, 2**40, None, -7], [True, None, False, True]])
def test_keys_keep_their_kind(values: list[Any]) -> None:
    fold = GroupFold(Grouping(("k",), {"rows": Aggregate("count")}))
    fold.add(pa.table({"k": values}))
    assert sorted(map(str, fold.result()["k"].to_pylist())) == sorted({str(each) for each in values})


def test_zero_and_minus_zero_are_one_key() -> None:
    fold = GroupFold(Grouping(("k",), {"rows": Aggregate("count")}))
    fold.add(pa.table({"k": [0.0, -0.0]}))
    assert fold.result().to_pydict() == {"k": [0.0], "rows": [2]}


@pytest.mark.parametrize(
    ("keys", "aggregates", "said"),
    [
        ((), {"n": Aggregate("sum", "n")}, "must be given"),
        (("k",), {}, "must be given"),
        (("j", "k"), {"n": Aggregate("count"), "k": Aggregate("count")}, "distinct, got twice: .k.$"),
        (("k",), {"n": Aggregate("median", "n")}, "expected one of count, sum"),
        (("k",), {"n": Aggregate("mean")}, "n: mean needs a column"),
    ],
)
def test_groupings_that_mean_nothing(keys: Any, aggregates: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        Grouping(keys, aggregates)


SAME = [
    [pa.array([1, -5, None]), pa.array([1, -5, None], pa.int8()), pa.array([1.0, -5.0, None])],
    [
        pa.array(["sea", "", "é", None]),
        pa.array(["sea", "", "é", None], pa.large_string()),
        pa.array(["sea", "", "é", None]).dictionary_encode(),
        pa.array(["x", "sea", "", "é", None]).slice(1),
    ],
    [pa.array([None, None], pa.string()), pa.nulls(2), pa.array([None, None], pa.int64())],
]


@pytest.mark.parametrize("columns", SAME)
def test_a_key_has_one_hash_whatever_its_shard_called_its_type(columns: list[Any]) -> None:
    first, *others = [key_hashes([each]) for each in columns]
    for other in others:
        assert np.array_equal(first, other)


def test_hashes_are_the_same_in_every_version() -> None:
    """They decide in which file a row is: a change would give other outputs for the same inputs."""
    hashes = key_hashes([pa.array(["sea", "ship"]), pa.array([1, 2**60])])
    assert hashes.tolist() == [8964545263136935386, 13808551141453497250]


@given(st.lists(st.text(max_size=6), unique=True, min_size=2, max_size=60))
def test_distinct_keys_have_distinct_hashes(keys: list[str]) -> None:
    hashes = key_hashes([pa.array(keys, pa.string())])
    assert len(set(hashes.tolist())) == len(keys)


def test_buckets_are_of_about_the_same_size_and_nested() -> None:
    hashes = key_hashes([pa.array([f"key-{at:06d}" for at in range(100_000)])])
    sizes = np.bincount(buckets_of(hashes, 16), minlength=16)
    assert sizes.min() > 0.9 * 100_000 / 16
    assert np.array_equal(buckets_of(hashes, 4), buckets_of(hashes, 16) // 4)
