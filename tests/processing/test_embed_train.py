"""Run type `embed_train`: the fold over groups, and what it needs of its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from treadle.domain.skipgram import init_weights, train_group
from treadle.domain.skipgram_options import SkipGramOptions
from treadle.errors import BadRowError, ManifestError, RunError

BODY = """
    run: {type: embed_train}
    inputs:
      tokens: {backend: jsonl, path: "${params.in}/*.jsonl"}
      mapping: {backend: parquet, path: "${params.in}/mapping.parquet"}
    embed_train:
      {dimensions: 4, window: 2, negatives: 3, epochs: 3, learning_rate: 0.1, subsample: 1, batch_pairs: 8}
    outputs: {vectors: {backend: parquet, path: vectors}}
    parallelism: {batch_rows: 2}
    runtime: {seed: 5, metrics_enabled: true}
"""
TERMS = ["a", "b", "c"]
FIRST = [["a", "b", "c", "a"], ["unknown", "b"], ["b", "a", "b"]]
SECOND = [["c", "c", "a", "b"], []]


def prepare(workshop: Any, mapping: pa.Table | None = None) -> None:
    workshop.rows("1", [{"tokens": each} for each in FIRST])
    workshop.rows("2", [{"tokens": each} for each in SECOND])
    if mapping is None:
        # Shuffled: the order of rows in a file is not the order of ids.
        mapping = pa.table({"term_id": [2, 0, 1], "term": ["c", "a", "b"], "count": [3, 4, 5]})
    pq.write_table(mapping, workshop.root / "in" / "mapping.parquet")


def test_it_is_the_fold_of_its_groups(workshop: Any) -> None:
    """Against the fold written out: epochs outside, units inside, the rate falling over all tokens."""
    prepare(workshop)
    outcome = workshop.run(BODY)
    options = SkipGramOptions(
        4, window=2, negatives=3, epochs=3, learning_rate=0.1, subsample=1, batch_pairs=8
    )
    weights = init_weights(3, 4, 5)
    ids = {term: number for number, term in enumerate(TERMS)}
    groups = [
        [np.array([ids[token] for token in tokens if token in ids], np.int32) for tokens in shard]
        for shard in (FIRST, SECOND)
    ]
    groups = [[each for each in group if len(each) > 1] for group in groups]
    sizes = [sum(map(len, group)) for group in groups]
    assert sizes == [7, 4]
    pairs, seen = 0, 0
    for epoch in range(3):
        for number, group in enumerate(groups):
            progress = (seen / 33, (seen + sizes[number]) / 33)
            counts = np.array([4, 5, 3])
            pairs += train_group(
                weights, group, counts, options, seed=(5, epoch, number), progress=progress
            ).pairs
            seen += sizes[number]
    rows = workshop.read("vectors")
    assert [(row["term_id"], row["term"], row["count"]) for row in rows] == [
        (0, "a", 4),
        (1, "b", 5),
        (2, "c", 3),
    ]
    np.testing.assert_array_equal(np.array([row["vector"] for row in rows], np.float32), weights.centers)
    assert outcome.counters.extra == {"pairs": pairs}
    assert pairs > 0
    assert outcome.metrics.counters["pairs"] == pairs


def test_a_unit_whose_tokens_are_none_is_bad_row_by_row(workshop: Any) -> None:
    """One file of another make must not cost the others."""
    prepare(workshop)
    path = workshop.rows("3", [{"tokens": "a b"}, {"tokens": None}])
    outcome = workshop.run(BODY + "    errors: {on_bad_row: quarantine}\n")
    assert outcome.counters.rejected == 2
    first, second = workshop.quarantined()
    assert (first["source"], first["line"], first["kind"]) == (str(path), 1, "wrong-type")
    assert first["reason"] == "column 'tokens' is string, expected lists of strings"
    assert second["reason"] == "tokens is null"
    with pytest.raises(BadRowError, match=r"3\.jsonl:1: column 'tokens' is string"):
        workshop.run(BODY, out=workshop.root / "again")


def test_rows_without_a_pair_are_filtered_once(workshop: Any) -> None:
    """However many epochs read them."""
    prepare(workshop)
    outcome = workshop.run(BODY)
    assert (outcome.counters.rows_in, outcome.counters.rows_out, outcome.counters.filtered) == (5, 3, 2)
    done = [each for each in workshop.sink.events if type(each).__name__ == "UnitDone"]
    assert [each.counters["rows_in"] for each in done] == [3, 2]


def test_another_seed_gives_other_vectors_and_the_same_seed_the_same(workshop: Any) -> None:
    prepare(workshop)
    first, second, third = (workshop.root / name for name in ("first", "second", "third"))
    workshop.run(BODY, out=first)
    workshop.run(BODY, out=second)
    workshop.run(BODY.replace("seed: 5", "seed: 6"), out=third)
    assert workshop.read("vectors", out=first) == workshop.read("vectors", out=second)
    assert workshop.read("vectors", out=first) != workshop.read("vectors", out=third)


def test_null_tokens_are_rejected_with_their_line(workshop: Any) -> None:
    prepare(workshop)
    path = workshop.rows("1", [{"tokens": None}, {"tokens": ["a", "b"]}, {"tokens": None}])
    outcome = workshop.run(BODY + "    errors: {on_bad_row: quarantine}\n")
    assert outcome.counters.rejected == 2
    assert [(each["source"], each["line"], each["reason"]) for each in workshop.quarantined()] == [
        (str(path), 1, "tokens is null"),
        (str(path), 3, "tokens is null"),
    ]


def test_too_many_bad_rows_are_told_before_the_training(workshop: Any) -> None:
    """Not after hours of it."""
    prepare(workshop)
    workshop.rows("1", ["torn", {"tokens": ["a", "b"]}])
    with pytest.raises(RunError, match="1 of 4 rows read are bad"):
        workshop.run(BODY + "    errors: {on_bad_row: skip, max_bad_fraction: 0.1}\n")
    assert "UnitDone" not in workshop.events()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"term_id": [0, 2], "term": ["a", "b"], "count": [1, 1]}, "count from 0 to 1 without gaps"),
        ({"term_id": [0], "term": ["a"]}, "expected the columns term_id, term, count, missing count"),
        (
            {
                "term_id": pa.array([], pa.int32()),
                "term": pa.array([], pa.string()),
                "count": pa.array([], pa.int64()),
            },
            "the mapping has no term",
        ),
    ],
)
def test_a_mapping_that_is_none(workshop: Any, columns: dict[str, Any], said: str) -> None:
    prepare(workshop, pa.table(columns))
    with pytest.raises(RunError, match=said) as caught:
        workshop.run(BODY)
    assert "mapping.parquet" in str(caught.value)


@pytest.mark.parametrize("row", [{"words": ["a"]}, {"tokens": "a b"}])
def test_tokens_that_are_none(workshop: Any, row: object) -> None:
    prepare(workshop)
    workshop.rows("1", [row])
    with pytest.raises(RunError, match=r"1\.jsonl"):
        workshop.run(BODY)


def test_a_missing_mapping_is_placed(workshop: Any) -> None:
    prepare(workshop)
    with pytest.raises(ManifestError, match=r"inputs\.mapping: expected a dataset, which embed_train needs"):
        workshop.run(BODY.replace("mapping:", "mapping_:"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"count": [3, None, 5]}, "expected a count of at least 1"),
        ({"count": [3, 0, 5]}, "expected a count of at least 1"),
        ({"count": [1.5, 1.0, 1.0]}, "mapping.parquet: .*1.5"),
        ({"count": ["x", "y", "z"]}, "mapping.parquet: Failed to parse"),
        ({"term": ["c", "a", "a"]}, "expected each term once"),
        ({"term": ["c", None, "a"]}, "expected each term once"),
    ],
)
def test_a_mapping_that_cannot_be_right_is_refused(
    workshop: Any, changed: dict[str, list[Any]], said: str
) -> None:
    """Each would train in silence: on NaN as the noise, or a term under one of its two ids."""
    whole = {"term_id": [2, 0, 1], "term": ["c", "a", "b"], "count": [3, 4, 5]}
    prepare(workshop, pa.table({**whole, **changed}))
    with pytest.raises(RunError, match=said):
        workshop.run(BODY)
