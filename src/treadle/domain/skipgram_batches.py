"""The corpus side of skip-gram: frequent words thinned out, the noise distribution, blocks of positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]

BLOCK = 32
"""Positions in a block: its products stay small enough for the cache and large enough for BLAS."""
_NOISE_POWER = 0.75


@dataclass(frozen=True)
class Corpus:
    """Sequences joined: the term at each position, and the sequence it belongs to."""

    terms: Ids
    owners: Ids


@dataclass(frozen=True)
class Batch:
    """Blocks of positions: centers (b, BLOCK) and around (b, BLOCK + 2 * window) hold term ids.

    `pairs` (b, BLOCK, BLOCK + 2 * window) float32 is 1 where the word around is inside the window of the
    center, else 0.
    """

    centers: Ids
    around: Ids
    pairs: NDArray[np.float32]


class Noise:
    """Draws terms with probability proportional to count ** 0.75."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        cumulated = np.cumsum(np.asarray(counts, np.float64) ** _NOISE_POWER)
        self._edges = cumulated / cumulated[-1]

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Ids:
        """Term ids of the given shape."""
        # side="right": a draw equal to an edge is the next term's, so a term without mass is never drawn.
        return np.searchsorted(self._edges, rng.random(shape), side="right").astype(np.int32)


def thinned(
    sequences: Sequence[Ids], counts: NDArray[np.int64], subsample: float, rng: np.random.Generator
) -> Corpus:
    """The sequences in a random order, without part of the occurrences of frequent terms.

    As in word2vec, one of a term of frequency f stays with probability sqrt(t / f) + t / f, t = subsample.
    """
    order = rng.permutation(len(sequences))
    chosen = [sequences[index] for index in order]
    terms = np.concatenate([np.empty(0, np.int32), *chosen]).astype(np.int32, copy=False)
    lengths = np.array([len(each) for each in chosen], np.intp)
    owners = np.repeat(np.arange(len(chosen), dtype=np.int32), lengths)
    if not subsample:
        return Corpus(terms, owners)
    ratio = subsample * counts.sum() / np.maximum(counts, 1)
    stay = rng.random(len(terms)) < (np.sqrt(ratio) + ratio)[terms]
    return Corpus(terms[stay], owners[stay])


def batches(corpus: Corpus, window: int, batch_pairs: int, rng: np.random.Generator) -> Iterator[Batch]:
    """The corpus in blocks, several to a batch: about `batch_pairs` pairs share one update."""
    per_batch = max(1, batch_pairs // (BLOCK * (window + 1)))
    count = -(-len(corpus.terms) // BLOCK)
    padding = (window, count * BLOCK - len(corpus.terms) + window)
    terms, owners = np.pad(corpus.terms, padding), np.pad(corpus.owners, padding, constant_values=-1)
    reach = rng.integers(1, window + 1, count * BLOCK)
    # offset[i, j]: how far position j of the words around lies from center i.
    offset = np.arange(-window, BLOCK + window) - np.arange(BLOCK)[:, None]
    for first in range(0, count, per_batch):
        starts = np.arange(first, min(first + per_batch, count))[:, None] * BLOCK
        middle = starts + np.arange(BLOCK)
        around = starts + np.arange(BLOCK + 2 * window)
        inside = (np.abs(offset) <= reach[middle][:, :, None]) & (offset != 0)
        inside &= owners[middle + window][:, :, None] == owners[around][:, None, :]
        inside &= (owners[middle + window] >= 0)[:, :, None]
        yield Batch(terms[middle + window], terms[around], inside.astype(np.float32))
