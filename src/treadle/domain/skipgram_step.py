"""One update of skip-gram: loss and gradients of a batch, and adding them to the rows they belong to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treadle.domain.skipgram_batches import Batch, Ids

Matrix = NDArray[np.float32]

_LONGEST_STEP = np.float32(0.5)
_TINY = np.float32(1e-12)


@dataclass
class SkipGramWeights:
    """What is trained, in place: the word vectors and the context vectors, both (n_terms, dimensions)."""

    centers: Matrix
    contexts: Matrix


@dataclass(frozen=True)
class Step:
    """Gradients of a batch's summed loss by place: center (b, L, d), around (b, M, d), negative (b, N, d)."""

    batch: Batch
    negatives: Ids
    by_center: Matrix
    by_around: Matrix
    by_negative: Matrix
    pairs: int
    loss: float | None

    def apply(self, weights: SkipGramWeights, rate: np.float32) -> None:
        """Take one step down the gradient, in place."""
        add_rows(weights.centers, self.batch.centers, self.by_center * -rate)
        around = np.concatenate([self.batch.around.reshape(-1), self.negatives.reshape(-1)])
        width = weights.contexts.shape[1]
        gradient = np.concatenate([self.by_around.reshape(-1, width), self.by_negative.reshape(-1, width)])
        add_rows(weights.contexts, around, gradient * -rate)


def batch_step(
    weights: SkipGramWeights,
    batch: Batch,
    negatives: Ids,
    negatives_per_pair: int,
    *,
    with_loss: bool = False,
) -> Step:
    """The gradients of the loss -log s(c.o) - sum over negatives log s(-c.n), summed over the pairs.

    Changes nothing. `negatives` (b, N) are shared by the pairs of a block: each weighs `negatives_per_pair`
    / N in a pair.
    """
    center = weights.centers[batch.centers]
    around = weights.contexts[batch.around]
    negative = weights.contexts[negatives]
    share = batch.pairs.sum(axis=2, keepdims=True) * np.float32(negatives_per_pair / negatives.shape[1])
    hit = _sigmoid(center @ around.transpose(0, 2, 1))
    miss = _sigmoid(center @ negative.transpose(0, 2, 1))
    loss = _loss(batch.pairs, hit, share, miss) if with_loss else None
    pull: Matrix = (hit - np.float32(1)) * batch.pairs
    push: Matrix = miss * share
    return Step(
        batch,
        negatives,
        by_center=pull @ around + push @ negative,
        by_around=pull.transpose(0, 2, 1) @ center,
        by_negative=push.transpose(0, 2, 1) @ center,
        pairs=int(batch.pairs.sum(dtype=np.float64)),
        loss=loss,
    )


def add_rows(target: Matrix, ids: Ids, rows: Matrix) -> None:
    """target[ids] += rows, where an id may occur many times and moves by at most 0.5 in all.

    A frequent word collects hundreds of pairs in one batch, all computed from its place before the batch:
    their plain sum overshoots and diverges. Sorted segments are twice as fast as np.add.at.
    """
    ids = ids.reshape(-1)
    order = np.argsort(ids, kind="stable")
    in_order = ids[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    steps = np.add.reduceat(rows.reshape(len(ids), -1)[order], starts, axis=0)
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    target[in_order[starts]] += steps * (_LONGEST_STEP / np.maximum(lengths, _LONGEST_STEP))


def _sigmoid(x: Matrix) -> Matrix:
    # By tanh: no overflow at either end, and vectorised for float32.
    return np.asarray(np.float32(0.5) * (np.tanh(np.float32(0.5) * x) + 1), np.float32)


def _loss(pairs: Matrix, hit: Matrix, share: Matrix, miss: Matrix) -> float:
    attracted = (np.log(np.maximum(hit, _TINY)) * pairs).sum(dtype=np.float64)
    repelled = (np.log(np.maximum(1 - miss, _TINY)) * share).sum(dtype=np.float64)
    return float(-attracted - repelled)
