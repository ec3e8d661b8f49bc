"""Equal rows by their digests, near duplicates by their signatures."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.domain.dedup import exact_digests, first_of_each, normalized, normalized_digests
from treadle.domain.minhash import choose_bands, estimated_jaccard, group_similar, shingles, signatures_of

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


def kinds(value: Any) -> Any:
    """A value with its types, so that 1, 1.0 and true are not equal."""
    if isinstance(value, list):
        return [kinds(each) for each in value]
    if isinstance(value, dict):
        return {key: kinds(each) for key, each in value.items()}
    return type(value), value


@given(st.lists(st.tuples(values, values), min_size=2, max_size=8))
def test_rows_have_one_digest_exactly_when_they_are_equal(rows: list[tuple[Any, Any]]) -> None:
    digests = exact_digests(rows).to_pylist()
    for one, digest in zip(rows, digests, strict=True):
        for other, another in zip(rows, digests, strict=True):
            same = [kinds(each) for each in one] == [kinds(each) for each in other]
            assert (digest == another) is same


def test_durations_and_uuids_are_values_like_any_other() -> None:
    """What a parquet file may hold must not stop a run."""
    one, other = timedelta(seconds=1), UUID(int=1)
    digests = exact_digests([[one], [other], [timedelta(seconds=1)], [timedelta(seconds=2)]]).to_pylist()
    assert digests[0] == digests[2]
    assert len(set(digests)) == 3


def test_values_of_different_kinds_and_boundaries_are_told_apart() -> None:
    rows: list[list[object]] = [
        [1, "a"],
        [1.0, "a"],
        ["1", "a"],
        [True, "a"],
        [None, "a"],
        ["a", "ab"],
        ["aa", "b"],
        ["", "aab"],
        [b"a", "ab"],
    ]
    assert len(set(exact_digests(rows).to_pylist())) == len(rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  The  SEA,\n\tthe sea!  ", "the sea the sea"),
        ("cafe\u0301 ﬁne ①", "café fine 1"),
        ("don't_stop", "don t stop"),
        ("— “…” —", ""),
        ("नमस्ते, दुनिया", "नमस्ते दुनिया"),
    ],
)
def test_what_normalizing_leaves(text: str, said: str) -> None:
    assert normalized(text) == said
    assert normalized(said) == said


def test_normalized_rows_are_compared_by_their_words() -> None:
    digests = normalized_digests([["A  b!", 1], ["a B", 1], ["a b", 2]]).to_pylist()
    assert digests[0] == digests[1] != digests[2]


@given(st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=20))
def test_the_first_of_each_value_is_found(found: list[bytes]) -> None:
    assert first_of_each(pa.array(found, pa.binary(1))).tolist() == [found.index(each) for each in found]


def test_shingles_are_runs_of_words() -> None:
    assert shingles("The sea, the sea the sea", 2) == ["the sea", "sea the"]
    assert shingles("One two.", 5) == ["one two"]
    assert shingles("...", 5) == []


def pair_of(draw: Random, similarity: float, words: int = 300) -> tuple[str, str]:
    """Two texts whose sets of words have that Jaccard index, to within a word."""
    shared = round(2 * words * similarity / (1 + similarity))
    one = [f"w{draw.randrange(10**12)}" for _ in range(words)]
    return " ".join(one), " ".join(
        [*one[:shared], *(f"w{draw.randrange(10**12)}" for _ in range(words - shared))]
    )


def signatures(texts: list[str], permutations: int = 128, ngram: int = 1) -> Any:
    column = signatures_of(texts, permutations, ngram, 7).to_pylist()
    data = b"".join(each or b"" for each in column)
    return np.frombuffer(data, np.uint32).reshape(-1, permutations)


@pytest.mark.parametrize("similarity", [0.3, 0.6, 0.8, 0.95])
def test_signatures_estimate_the_jaccard_index(similarity: float) -> None:
    """Without bias, and with a spread of at most that of so many draws."""
    draw = Random(5)
    texts = [text for _ in range(60) for text in pair_of(draw, similarity)]
    found = estimated_jaccard(signatures(texts), np.arange(0, 120, 2), np.arange(1, 120, 2))
    spread = math.sqrt(similarity * (1 - similarity) / 128)
    assert abs(found.mean() - similarity) < 4 * spread / math.sqrt(60)
    assert found.std() < 1.5 * spread


def test_pairs_above_the_threshold_are_found_and_those_below_are_not() -> None:
    draw = Random(9)
    for similarity, low, high in ((0.6, 0, 0), (0.95, 50, 50)):
        texts = [text for _ in range(50) for text in pair_of(draw, similarity)]
        found = group_similar(signatures(texts), 0.8)
        joined = int((found[1::2] == np.arange(0, 100, 2)).sum())
        assert low <= joined <= high
        assert (found[::2] == np.arange(0, 100, 2)).all()


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9])
def test_groups_are_those_of_comparing_all_pairs(threshold: float) -> None:
    """Against brute force over the same signatures: banding misses few, and adds none."""
    draw = Random(13)
    texts = [text for at in range(60) for text in pair_of(draw, 0.4 + 0.6 * at / 60, words=120)]
    draw.shuffle(texts)
    found = signatures(texts)
    agree = (found[:, None, :] == found[None, :, :]).mean(axis=2)
    pairs = {(int(a), int(b)) for a, b in np.argwhere(agree >= threshold) if a < b}
    groups = group_similar(found, threshold)
    members = defaultdict(list)
    for place, first in enumerate(groups.tolist()):
        members[first].append(place)
    joined = {(first, each) for first, all_of in members.items() for each in all_of if each != first}
    assert joined <= pairs  # the texts come in pairs, so no group is larger
    assert len(joined) >= 0.97 * len(pairs)
    assert len(pairs) > 5


def test_a_chain_of_similar_texts_is_one_group_with_its_first_as_root() -> None:
    words = [f"w{at}" for at in range(400)]
    texts = [" ".join(words[20 * at : 20 * at + 200]) for at in range(6)]
    assert group_similar(signatures(texts), 0.6).tolist() == [0] * 6
    assert group_similar(signatures(texts[::-1]), 0.6).tolist() == [0] * 6


def test_many_equal_texts_cost_no_pairs() -> None:
    texts = ["the same text again and again"] * 3000
    assert set(group_similar(signatures(texts), 0.8).tolist()) == {0}


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.95])
def test_bands_find_what_is_at_the_threshold(threshold: float) -> None:
    bands, rows = choose_bands(128, threshold)
    assert bands * rows <= 128
    assert 1 - (1 - threshold**rows) ** bands >= 0.99


def test_texts_without_words_have_no_signature() -> None:
    column = signatures_of(["...", None, "a sea", "a\nsea"], 16, 5, 0).to_pylist()
    assert column[:2] == [None, None]
    assert column[2] == column[3]


def test_signatures_depend_on_the_seed_and_on_nothing_else() -> None:
    texts = ["the sea the sea", "a ship"]
    assert signatures_of(texts, 16, 2, 1) == signatures_of(texts, 16, 2, 1)
    assert signatures_of(texts, 16, 2, 1) != signatures_of(texts, 16, 2, 2)
