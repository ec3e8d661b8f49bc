"""Skip-gram with negative sampling (Mikolov et al. 2013), as matrix products in numpy.

Pairs are never listed. The corpus is cut into blocks of neighbouring positions; one small product scores a
block's centers against all the words around it, a mask keeps the pairs inside each center's window, and the
negatives are drawn once per block and shared by its pairs, weighted so that each pair sees `negatives` of
them (Ji et al. 2016, "Parallelizing word2vec in shared and distributed memory"). So a word's row is gathered
and added to once per position instead of once per pair.

One call trains one pass over one group; `training_passes` is the order of groups and epochs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treadle.domain.skipgram_batches import Ids, Noise, batches, thinned
from treadle.domain.skipgram_options import SkipGramOptions
from treadle.domain.skipgram_step import SkipGramWeights, batch_step

_BLOCK_NEGATIVES = 32
_LEAST_RATE = 1e-3
_LOSS_EVERY = 16


class GroupReport(NamedTuple):
    """Pairs seen, and the mean loss of a pair in nats (estimated on every 16th batch)."""

    pairs: int
    loss: float


class Pass(NamedTuple):
    """One epoch's turn at one group; `progress` is its part of the whole training, which is (0, 1)."""

    epoch: int
    group: int
    progress: tuple[float, float]


def init_weights(n_terms: int, dimensions: int, seed: int) -> SkipGramWeights:
    """Small uniform word vectors and zero context vectors, as in word2vec."""
    rng = np.random.default_rng(seed)
    centers = (rng.random((n_terms, dimensions), dtype=np.float32) - np.float32(0.5)) / np.float32(dimensions)
    return SkipGramWeights(centers, np.zeros((n_terms, dimensions), np.float32))


def training_passes(group_tokens: Sequence[int], epochs: int) -> Iterator[Pass]:
    """Every epoch visits every group in order; progress advances with the tokens (the groups' sizes)."""
    total = max(sum(group_tokens), 1) * epochs
    seen = 0
    for epoch in range(epochs):
        for group, tokens in enumerate(group_tokens):
            yield Pass(epoch, group, (seen / total, (seen + tokens) / total))
            seen += tokens


def train_group(
    weights: SkipGramWeights,
    sequences: Sequence[Ids],
    counts: NDArray[np.int64],
    options: SkipGramOptions,
    *,
    seed: int | Sequence[int],
    progress: tuple[float, float] = (0.0, 1.0),
) -> GroupReport:
    """One pass over a group of sequences of term ids, in a random order; changes `weights` in place.

    `counts` are the terms' counts in the whole corpus (for subsampling and the noise distribution). Windows
    never cross sequences. The result depends on weights, sequences, counts, options, seed and progress alone.
    """
    rng = np.random.default_rng(seed)
    corpus = thinned(sequences, counts, options.subsample, rng)
    noise = Noise(counts)
    pairs, losses, seen = 0, [], 0
    for number, batch in enumerate(batches(corpus, options.window, options.batch_pairs, rng)):
        rate = options.learning_rate * max(_remaining(progress, seen / len(corpus.terms)), _LEAST_RATE)
        seen += batch.centers.size
        negatives = noise.draw((len(batch.centers), _BLOCK_NEGATIVES), rng)
        step = batch_step(weights, batch, negatives, options.negatives, with_loss=number % _LOSS_EVERY == 0)
        step.apply(weights, np.float32(rate))
        pairs += step.pairs
        if step.loss is not None and step.pairs:
            losses.append(step.loss / step.pairs)
    return GroupReport(pairs, float(np.mean(losses)) if losses else 0.0)


def _remaining(progress: tuple[float, float], part: float) -> float:
    """What is left of the training after `part` of this pass."""
    start, end = progress
    return 1 - (start + (end - start) * part)
