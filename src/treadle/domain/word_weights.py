"""Word vectors prepared for passage vectors: common directions removed, each word weighted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treadle.domain.columns import vector_matrix
from treadle.domain.text import STOPWORDS
from treadle.errors import ArgumentError

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class PassageBasis:
    """Terms, and the weighted vector (n, d) float32 that each occurrence of a term adds to its passage."""

    terms: pa.Array[Any]
    vectors: NDArray[np.float32]


def passage_basis(
    words: pa.Table, *, smoothing: float, components: int, drop_stopwords: bool
) -> PassageBasis:
    """Weigh the word vectors, and remove their mean and first `components` principal directions.

    Takes a table term, count, vector and perhaps documents. Mean and directions are those of the words as
    passages hold them: each term counts with its frequency times its weight (Arora, Liang, Ma 2017; Mu,
    Viswanath 2018).

    Raises ArgumentError when a count is null or no integer, or a vector is not one.
    """
    _check_counts(words)
    terms = words["term"].combine_chunks()
    counts = words["count"].to_numpy().astype(np.float64)
    frequency = counts / max(counts.sum(), 1.0)
    weight = smoothing / (smoothing + frequency)
    if "documents" in words.column_names:
        weight *= residual_idf(counts, words["documents"].to_numpy().astype(np.float64))
    if drop_stopwords:
        weight[[term in STOPWORDS for term in terms.to_pylist()]] = 0.0
    matrix = vector_matrix(words["vector"]).astype(np.float64)
    matrix = _without_common_directions(matrix, frequency * weight, components)
    return PassageBasis(terms, (matrix * weight[:, None]).astype(np.float32))


def _check_counts(words: pa.Table) -> None:
    for name in ("count", "documents"):
        if name not in words.column_names:
            continue
        if not pa.types.is_integer(words.schema.field(name).type) or words[name].null_count:
            raise ArgumentError(f"column {name!r} of the word vectors must hold integers, without nulls")


def residual_idf(counts: Numbers, documents: Numbers) -> Numbers:
    """How many bits rarer a term is among documents than by chance (Church, Gale 1995), at least 0.

    Words with a subject come in bursts and score high; words of manner and ceremony are spread evenly and
    score low. The largest document count stands for the number of documents.
    """
    total = max(documents.max(initial=0.0), 1.0)
    found = np.maximum(documents, 1.0) / total
    by_chance = -np.expm1(-counts / total)
    bits = np.log2(np.maximum(by_chance, np.finfo(np.float64).tiny) / found)
    return np.asarray(np.maximum(bits, 0.0))


def _without_common_directions(matrix: Numbers, mass: Numbers, components: int) -> Numbers:
    if mass.sum() <= 0:
        return matrix
    matrix = matrix - np.average(matrix, axis=0, weights=mass)
    _, directions = np.linalg.eigh((matrix * mass[:, None]).T @ matrix)
    common = directions[:, max(directions.shape[1] - components, 0) :]
    return np.asarray(matrix - matrix @ common @ common.T)
