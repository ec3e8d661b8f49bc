"""What clusters of passages are about: their terms, their representatives, and their share over time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treadle.domain.text import STOPWORDS
from treadle.errors import ArgumentError

_SHORTEST_TERM = 3


class TopicTerm(NamedTuple):
    """A term of a cluster, its score, and how often the cluster holds it (its collapsed forms included)."""

    term: str
    score: float
    occurrences: int


def count_cluster_terms(labels: Iterable[int], token_lists: Iterable[Iterable[str]]) -> pa.Table:
    """Columns cluster: int32, term: string, count: int64, sorted."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for label, tokens in zip(labels, token_lists, strict=True):
        counts[int(label)].update(tokens)
    rows = sorted((cluster, term, n) for cluster, counted in counts.items() for term, n in counted.items())
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    kinds = (pa.int32(), pa.string(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=["cluster", "term", "count"])


def class_terms(
    cluster_terms: pa.Table, *, top: int = 10, stopwords: Collection[str] = STOPWORDS
) -> dict[int, tuple[TopicTerm, ...]]:
    """The `top` terms of each cluster by a class-based TF-IDF after Grootendorst (2022).

    Takes columns cluster, term, count. A term scores sqrt(tf) * log(tf / p), where tf is its share of the
    cluster's words and p its share of all words: root and ratio keep words that are common everywhere from
    leading every list. Left out: stopwords, numbers, terms of one or two letters. Forms that differ by an
    English plural are one term, shown in its commonest form.
    """
    counts, forms = _collapsed(cluster_terms, stopwords)
    shown = {stem: max(sorted(found), key=found.__getitem__) for stem, found in forms.items()}
    everywhere = sum(counts.values(), Counter())
    return {cluster: tuple(_ranked(counts[cluster], everywhere, shown)[:top]) for cluster in sorted(counts)}


def _ranked(cluster: Counter[str], everywhere: Counter[str], shown: Mapping[str, str]) -> list[TopicTerm]:
    words, all_words = cluster.total(), everywhere.total()
    terms = []
    for stem, count in cluster.items():
        share = count / words
        score = math.sqrt(share) * math.log(share * all_words / everywhere[stem])
        terms.append(TopicTerm(shown[stem], score, count))
    return sorted(terms, key=lambda each: (-each.score, each.term))


def representatives(
    labels: NDArray[np.int32], distances: NDArray[np.float32], keys: Sequence[Hashable], *, count: int = 5
) -> dict[int, tuple[int, ...]]:
    """The `count` rows nearest to each cluster's centroid; ties go to the earlier row.

    No two rows of a cluster share a key: give each row its document, or its text, to get distinct ones.
    """
    chosen: defaultdict[int, list[int]] = defaultdict(list)
    taken: set[tuple[int, Hashable]] = set()
    for row in np.lexsort((np.arange(len(labels)), distances)).tolist():
        cluster = int(labels[row])
        if len(chosen[cluster]) < count and (cluster, keys[row]) not in taken:
            taken.add((cluster, keys[row]))
            chosen[cluster].append(row)
    return {cluster: tuple(chosen[cluster]) for cluster in sorted(chosen)}


def topics_over_time(labels: NDArray[np.int32], years: NDArray[np.int64], *, bucket: int = 10) -> pa.Table:
    """Passages and share of each cluster in each span of `bucket` years.

    Columns start: int64 (first year of the span), cluster: int32, passages: int64, share: float64 (of the
    span's passages); sorted; every cluster has a row in every span that has passages.
    """
    if bucket < 1:
        raise ArgumentError(f"bucket must be at least 1 year, got {bucket}")
    starts, when = np.unique(years // bucket * bucket, return_inverse=True)
    clusters, which = np.unique(labels, return_inverse=True)
    passages = np.bincount(when * len(clusters) + which, minlength=len(starts) * len(clusters))
    grid = passages.reshape(len(starts), len(clusters))
    return pa.table(
        {
            "start": pa.array(np.repeat(starts, len(clusters)), pa.int64()),
            "cluster": pa.array(np.tile(clusters, len(starts)), pa.int32()),
            "passages": pa.array(passages, pa.int64()),
            "share": pa.array(
                (grid / np.maximum(grid.sum(axis=1, keepdims=True), 1)).reshape(-1), pa.float64()
            ),
        }
    )


def _collapsed(
    table: pa.Table, stopwords: Collection[str]
) -> tuple[dict[int, Counter[str]], dict[str, Counter[str]]]:
    """Counts by cluster and stem, and the forms of each stem."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    columns = [table[name].to_pylist() for name in ("cluster", "term", "count")]
    for cluster, term, count in cast("Iterable[tuple[int, str, int]]", zip(*columns, strict=True)):
        counted = counts[cluster]
        if len(term) >= _SHORTEST_TERM and term not in stopwords and not any(map(str.isdigit, term)):
            stem = singular(term)
            counted[stem] += count
            forms[stem][term] += count
    return counts, forms


def singular(term: str) -> str:
    """The term without an English plural ending, by the S-stemmer (Harman 1991): duties -> duty."""
    if term.endswith("ies") and not term.endswith(("eies", "aies")):
        return term[:-3] + "y"
    if term.endswith("es") and not term.endswith(("aes", "ees", "oes")):
        return term[:-1]
    if term.endswith("s") and not term.endswith(("us", "ss")):
        return term[:-1]
    return term
