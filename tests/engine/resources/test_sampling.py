"""Picking from one row: the filters as transformers has them, chances as they should be."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from treadle.engine.resources.sampling import Sampling, chance, reported
from treadle.errors import ArgumentError

SEED = 20261130


def likelihood(observed: Sequence[float], expected: Sequence[float]) -> float:
    """Of counts at least so far off, by the chi-square test; both sum to the same."""
    off = sum((count - wanted) ** 2 / wanted for count, wanted in zip(observed, expected, strict=True))
    freedom = torch.tensor((len(observed) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(freedom, torch.tensor(off / 2, dtype=torch.float64)))


def chances(scores: torch.Tensor, wish: Sampling, past: tuple[int, ...] = (1,)) -> torch.Tensor:
    """What transformers would draw from."""
    ids: Any = torch.tensor([past])
    steps = LogitsProcessorList([TemperatureLogitsWarper(wish.temperature)])
    if wish.repetition_penalty != 1:
        steps.insert(0, RepetitionPenaltyLogitsProcessor(wish.repetition_penalty))
    if wish.top_k:
        steps.append(TopKLogitsWarper(wish.top_k))
    if wish.top_p < 1:
        steps.append(TopPLogitsWarper(wish.top_p))
    if wish.min_p:
        steps.append(MinPLogitsWarper(wish.min_p))
    return torch.softmax(steps(ids, scores[None].clone())[0].double(), 0)


def drawn(scores: torch.Tensor, wish: Sampling, times: int, past: tuple[int, ...] = ()) -> Counter[int]:
    counts: Counter[int] = Counter()
    for at in range(times):
        token = wish.pick(scores, past, at)
        assert token is not None
        counts[token] += 1
    return counts


WISHES = [
    Sampling(1.0, SEED),
    Sampling(0.6, SEED),
    Sampling(2.5, SEED, top_k=5),
    Sampling(1.0, SEED, top_p=0.7),
    Sampling(1.0, SEED, min_p=0.2),
    Sampling(1.0, SEED, repetition_penalty=1.8),
    Sampling(1.3, SEED, top_k=9, top_p=0.8, min_p=0.1, repetition_penalty=1.2),
]


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_draws_have_the_chances_of_transformers(wish: Sampling) -> None:
    """Chi-square over 4,000 draws; a token that a filter took out is never drawn."""
    scores = torch.randn(40, generator=torch.Generator().manual_seed(SEED)) * 2
    past = (*scores.topk(3).indices.tolist(), 0, 1)
    expected = chances(scores, wish, past) * 4000
    counts = drawn(scores, wish, 4000, past)
    assert all(expected[token] > 0 for token in counts)
    often = [token for token in range(40) if expected[token] >= 5]
    rare = 4000 - sum(counts[token] for token in often)
    observed = [*(counts[token] for token in often), rare]
    wanted = [*(float(expected[token]) for token in often), 4000 - float(expected[often].sum())]
    if wanted[-1] < 1e-6:
        assert rare == 0
        observed, wanted = observed[:-1], wanted[:-1]
    assert likelihood(observed, wanted) > 1e-3, f"seed {SEED}"


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(2, 3000),
    top_k=st.integers(0, 50),
    top_p=st.floats(0.05, 1.0),
    min_p=st.sampled_from([0.0, 0.05, 0.5]),
    penalty=st.sampled_from([1.0, 0.5, 3.0]),
)
def test_the_filters_leave_what_those_of_transformers_leave(
    seed: int, size: int, top_k: int, top_p: float, min_p: float, penalty: float
) -> None:
    """Whatever the point, the token drawn is one that transformers could draw; the first is its likeliest."""
    scores = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    wish = Sampling(0.8, seed, top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=penalty)
    past = (0, size - 1, 0)
    expected = chances(scores, wish, past)
    # At the very border of a share, sums in another order may differ by one token.
    nearly = [chances(scores, _with_share(wish, top_p + d), past) for d in (-1e-5, 1e-5)]
    for at in range(20):
        token = wish.pick(scores, set(past), at)
        assert token is not None
        assert max(float(each[token]) for each in (expected, *nearly)) > 0


def _with_share(wish: Sampling, top_p: float) -> Sampling:
    return Sampling(
        wish.temperature,
        top_k=wish.top_k,
        top_p=min(max(top_p, 1e-9), 1.0),
        min_p=wish.min_p,
        repetition_penalty=wish.repetition_penalty,
    )


def test_a_flat_row_is_sorted_whole() -> None:
    """Half of 5,000 equal chances are 2,500 tokens, more than the first look takes in."""
    scores = torch.linspace(0, 1e-3, 5000)
    least = min(drawn(scores, Sampling(1.0, SEED, top_p=0.5), 3000))
    assert 2490 <= least < 2520


def test_ties_at_the_border_of_top_k_all_stay() -> None:
    """Which of two equals is cut would depend on how they were sorted."""
    scores = torch.tensor([1.0, 2.0, 1.0, 0.0])
    assert set(drawn(scores, Sampling(1.0, SEED, top_k=2), 200)) == {0, 1, 2}


def test_a_penalty_turns_the_likeliest_token_away() -> None:
    """Scores above 0 are divided, those below multiplied: both fall."""
    wish = Sampling(repetition_penalty=2.0)
    assert wish.pick(torch.tensor([3.0, 2.0, 1.0]), {0}, 0) == 1
    assert wish.pick(torch.tensor([-3.0, -2.0, -3.5]), {1}, 0) == 0
    assert wish.pick(torch.tensor([3.0, 2.0, 1.0]), (), 0) == 0


def test_a_token_that_cannot_be_is_never_drawn() -> None:
    """Minus infinity is how a caller forbids a token."""
    scores = torch.tensor([-math.inf, 0.0, -math.inf, 0.0])
    for temperature in (1e-300, 1.0, 1e300):
        assert set(drawn(scores, Sampling(temperature, SEED), 100)) == {1, 3}


def test_chance_is_even_over_numbers_and_over_seeds() -> None:
    """Neighbouring seeds and neighbouring draws must not resemble each other."""
    rows: list[Callable[[int], float]] = [
        lambda at: chance(SEED, at),
        lambda at: chance(at, 0),
        lambda at: chance(-at, at),
    ]
    for row in rows:
        points = [row(at) for at in range(20_000)]
        assert min(points) >= 0
        assert max(points) < 1
        single = Counter(int(point * 100) for point in points)
        pairs = Counter((int(a * 10), int(b * 10)) for a, b in zip(points[::2], points[1::2], strict=True))
        for counts in (list(single.values()), list(pairs.values())):
            assert len(counts) == 100
            assert likelihood(counts, [sum(counts) / 100] * 100) > 1e-4, f"seed {SEED}"


def test_logs_are_of_the_scores_as_the_model_gave_them() -> None:
    """A penalty or a filter changes what is drawn, and not what the model believed."""
    scores = torch.tensor([0.0, 3.0, 1.0, 2.0], dtype=torch.bfloat16)
    logs = torch.log_softmax(scores.float(), 0)
    pick = reported(2, scores, 2)
    assert pick.token == 2
    assert pick.logprob == pytest.approx(float(logs[2]), abs=1e-6)
    assert [token for token, _ in pick.top] == [1, 3]
    assert [value for _, value in pick.top] == pytest.approx([float(logs[1]), float(logs[3])], abs=1e-6)
    assert reported(2, scores, 0).top == ()
    assert reported(2, scores, None).logprob is None
    assert len(reported(2, scores, 9).top) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"min_p": -0.1},
        {"repetition_penalty": 0.0},
        {"logprobs": -1},
        {"picked": -1},
    ],
)
def test_a_value_out_of_range_is_named(change: dict[str, float]) -> None:
    """Found when the request comes in, and not in the middle of a batch."""
    with pytest.raises(ArgumentError, match=f"{next(iter(change))} must be"):
        Sampling(**change)  # type: ignore[arg-type]
