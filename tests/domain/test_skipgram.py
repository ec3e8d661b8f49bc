"""Skip-gram against its definition, pair by pair, in plain Python and float64."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from treadle.domain.skipgram import init_weights, train_group, training_passes
from treadle.domain.skipgram_batches import Batch, Corpus, Noise, batches, thinned
from treadle.domain.skipgram_options import SkipGramOptions
from treadle.domain.skipgram_step import SkipGramWeights, add_rows, batch_step
from treadle.errors import ArgumentError

TERMS, DIMENSIONS = 12, 5


def random_weights(seed: int = 0) -> SkipGramWeights:
    rng = np.random.default_rng(seed)
    return SkipGramWeights(*rng.standard_normal((2, TERMS, DIMENSIONS)).astype(np.float32))


def one_batch(window: int = 3, seed: int = 0) -> tuple[Batch, NDArray[np.int32]]:
    rng = np.random.default_rng(seed)
    sequences = [rng.integers(0, TERMS, length).astype(np.int32) for length in (9, 1, 40, 7)]
    corpus = thinned(sequences, np.ones(TERMS, np.int64), 0, rng)
    batch = next(iter(batches(corpus, window, 10_000, rng)))
    return batch, rng.integers(0, TERMS, (len(batch.centers), 4)).astype(np.int32)


def pair_loss(weights: SkipGramWeights, batch: Batch, negatives: NDArray[np.int32], per_pair: int) -> float:
    """The definition: for each pair -log s(c.o), and each shared negative's part of -log s(-c.n)."""
    centers, contexts = weights.centers.astype(np.float64), weights.contexts.astype(np.float64)
    loss = 0.0
    for block, row, column in zip(*np.nonzero(batch.pairs), strict=True):
        center = centers[batch.centers[block, row]]
        loss += math.log1p(math.exp(-center @ contexts[batch.around[block, column]]))
        for negative in negatives[block]:
            loss += per_pair / negatives.shape[1] * math.log1p(math.exp(center @ contexts[negative]))
    return loss


def by_term(ids: NDArray[np.int32], gradient: NDArray[np.float32]) -> NDArray[np.float64]:
    total = np.zeros((TERMS, DIMENSIONS))
    np.add.at(total, ids.reshape(-1), gradient.reshape(-1, DIMENSIONS).astype(np.float64))
    return total


def test_the_loss_is_that_of_the_pairs_one_by_one() -> None:
    batch, negatives = one_batch()
    weights = random_weights()
    step = batch_step(weights, batch, negatives, 3, with_loss=True)
    assert step.loss == pytest.approx(pair_loss(weights, batch, negatives, 3), rel=1e-5)
    assert step.pairs == np.count_nonzero(batch.pairs)


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    """Central differences in float64, for every weight."""
    batch, negatives = one_batch()
    weights = random_weights()
    step = batch_step(weights, batch, negatives, 3)
    around = by_term(batch.around, step.by_around) + by_term(negatives, step.by_negative)
    gradients = {"centers": by_term(batch.centers, step.by_center), "contexts": around}
    for name, gradient in gradients.items():
        for at in np.ndindex(TERMS, DIMENSIONS):
            moved = []
            for sign in (1, -1):
                other = SkipGramWeights(
                    weights.centers.astype(np.float64), weights.contexts.astype(np.float64)
                )
                getattr(other, name)[at] += sign * 1e-5
                moved.append(pair_loss(other, batch, negatives, 3))
            assert gradient[at] == pytest.approx((moved[0] - moved[1]) / 2e-5, rel=1e-3, abs=1e-3)


@given(st.lists(st.integers(0, 45), max_size=8), st.integers(1, 6), st.integers(0, 99))
def test_pairs_are_the_neighbours_of_one_sequence(lengths: list[int], window: int, seed: int) -> None:
    """No pair crosses into another sequence or is lost at a block's edge; a position has one reach."""
    owners = np.repeat(np.arange(len(lengths), dtype=np.int32), np.array(lengths, np.intp))
    corpus = Corpus(np.arange(len(owners), dtype=np.int32), owners)
    found: dict[int, list[int]] = {}
    for batch in batches(corpus, window, 500, np.random.default_rng(seed)):
        for block, row, column in zip(*np.nonzero(batch.pairs), strict=True):
            found.setdefault(int(batch.centers[block, row]), []).append(int(batch.around[block, column]))
    for position, owner in enumerate(owners):
        neighbours = [other for other in range(len(owners)) if other != position and owners[other] == owner]
        got = found.get(position, [])
        reach = max((abs(other - position) for other in got), default=1)
        assert reach <= window
        assert got == [other for other in neighbours if abs(other - position) <= reach]


def test_thinning_keeps_rare_terms_and_the_stated_part_of_frequent_ones() -> None:
    counts = np.array([90_000, 10], np.int64)
    sequences = [np.repeat(np.array([0, 1], np.int32), [9_000, 1])] * 10
    corpus = thinned(sequences, counts, 1e-3, np.random.default_rng(0))
    kept = np.bincount(corpus.terms)
    ratio = 1e-3 * 90_010 / 90_000
    assert kept[1] == 10
    assert kept[0] / 90_000 == pytest.approx(math.sqrt(ratio) + ratio, rel=0.05)
    assert len(thinned([], counts, 1e-3, np.random.default_rng(0)).terms) == 0


def test_noise_follows_the_counts_to_three_quarters() -> None:
    counts = np.array([1, 0, 16, 81])
    drawn = Noise(counts).draw((100, 1000), np.random.default_rng(0))
    assert np.bincount(drawn.reshape(-1), minlength=4) / 100_000 == pytest.approx(counts**0.75 / 36, abs=0.01)
    assert 1 not in drawn


def test_rows_are_added_once_each_and_bounded() -> None:
    """Without the bound the summed pairs of a frequent word throw it out of the space within one epoch."""
    target = np.zeros((3, 2), np.float32)
    add_rows(target, np.array([[2, 0], [2, 2]], np.int32), np.full((2, 2, 2), 0.1, np.float32))
    assert target[:, 0] == pytest.approx([0.1, 0, 0.3])
    add_rows(target, np.array([1], np.int32), np.array([[30, 40]], np.float32))
    assert target[1].tolist() == pytest.approx([0.3, 0.4])


def corpus_of_two_subjects(size: int = 300) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Terms 0 to 5 keep company, so do 6 to 11."""
    rng = np.random.default_rng(5)
    sequences = [(rng.integers(0, 6, 20) + 6 * (at % 2)).astype(np.int32) for at in range(size)]
    return sequences, np.bincount(np.concatenate(sequences), minlength=TERMS)


def test_words_of_one_subject_end_up_together() -> None:
    sequences, counts = corpus_of_two_subjects()
    options = SkipGramOptions(dimensions=DIMENSIONS, window=5, subsample=0, batch_pairs=512)
    weights = init_weights(TERMS, DIMENSIONS, seed=1)
    reports = [
        train_group(weights, sequences, counts, options, seed=(1, each.epoch), progress=each.progress)
        for each in training_passes([len(sequences)], epochs=8)
    ]
    unit = weights.centers / np.linalg.norm(weights.centers, axis=1, keepdims=True)
    alike = unit @ unit.T
    assert alike[:6, :6].min() > 0.5 > alike[:6, 6:].max()
    assert reports[-1].loss < reports[0].loss


def test_the_same_seed_gives_the_same_weights_and_another_does_not() -> None:
    """A rerun of a killed step must make the artifact that an undisturbed one made."""
    sequences, counts = corpus_of_two_subjects(40)
    trained = []
    for seed in ((7, 0), (7, 0), (7, 1)):
        weights = init_weights(TERMS, DIMENSIONS, seed=1)
        train_group(weights, sequences, counts, SkipGramOptions(dimensions=DIMENSIONS), seed=seed)
        trained.append((weights.centers.tobytes(), weights.contexts.tobytes()))
    assert trained[0] == trained[1] != trained[2]


def test_a_group_depends_on_nothing_but_its_inputs() -> None:
    """Groups are folded in order: stopping after any and going on from the stored weights changes nothing."""
    sequences, counts = corpus_of_two_subjects(60)
    options = SkipGramOptions(dimensions=DIMENSIONS)
    halves = [sequences[:30], sequences[30:]]
    straight, resumed = init_weights(TERMS, DIMENSIONS, 1), init_weights(TERMS, DIMENSIONS, 1)
    for at, half in enumerate(halves):
        train_group(straight, half, counts, options, seed=(3, at))
        train_group(resumed, half, counts, options, seed=(3, at))
        resumed = SkipGramWeights(resumed.centers.copy(), resumed.contexts.copy())
    assert straight.centers.tolist() == resumed.centers.tolist()


@given(st.lists(st.integers(0, 9), max_size=5), st.integers(1, 4))
def test_progress_covers_the_training_without_gaps(sizes: list[int], epochs: int) -> None:
    passes = list(training_passes(sizes, epochs))
    assert [(each.epoch, each.group) for each in passes] == [
        (e, g) for e in range(epochs) for g in range(len(sizes))
    ]
    bounds = [0.0, *(bound for each in passes for bound in each.progress)]
    assert bounds == sorted(bounds)
    assert not sum(sizes) or bounds[-1] == 1


def test_empty_groups_train_nothing_and_bad_options_are_named() -> None:
    weights = random_weights()
    before = weights.centers.copy()
    report = train_group(weights, [], np.ones(TERMS, np.int64), SkipGramOptions(), seed=0)
    assert report == (0, 0.0)
    assert weights.centers.tolist() == before.tolist()
    with pytest.raises(ArgumentError, match="window must be above 0, got 0"):
        SkipGramOptions(window=0)
