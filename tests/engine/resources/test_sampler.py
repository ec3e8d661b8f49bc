"""Picking tokens: greedy, drawn, and refused."""

from collections import Counter

import pytest
import torch

from treadle.engine.resources.sampler import Sampler, Sampling
from treadle.engine.resources.step import ResourceStep, Segment, StepContext
from treadle.errors import EngineError

SCORES = torch.tensor([0.0, 3.0, 1.0, 2.0])


def sampler_of(**wishes: Sampling | None) -> Sampler:
    sampler = Sampler()
    for rid, wish in wishes.items():
        sampler.ingest(rid, wish)
    return sampler


def pick(sampler: Sampler, *rids: str, scores: torch.Tensor | None = None) -> tuple[int | None, ...]:
    plan = sampler.plan(ResourceStep(tuple(Segment(rid, 1) for rid in rids)), StepContext())
    return plan.sample(SCORES.expand(len(rids), 4) if scores is None else scores)


def test_without_a_wish_the_likeliest_is_taken() -> None:
    """Greedy is what can be compared with a reference."""
    assert pick(sampler_of(a=None, b=Sampling(0.0)), "b", "a") == (1, 1)


def test_draws_do_not_depend_on_batch_mates() -> None:
    """The same request must give the same text on a busy engine as on an idle one."""
    alone = sampler_of(a=Sampling(1.0, seed=7))
    among = sampler_of(a=Sampling(1.0, seed=7), b=Sampling(1.0, seed=8), c=None)
    for mates in (("b", "a", "c"), ("a",), ("c", "a"), ("a", "b")) * 5:
        assert pick(among, *mates)[mates.index("a")] == pick(alone, "a")[0]


def test_draws_follow_the_softmax() -> None:
    """Temperature divides the scores: at 2, a gap of 3 counts as 1.5."""
    sampler = sampler_of(a=Sampling(2.0, seed=1))
    counts = Counter(pick(sampler, "a")[0] for _ in range(4000))
    expected = torch.softmax(SCORES / 2.0, 0)
    for token in range(4):
        assert counts[token] / 4000 == pytest.approx(float(expected[token]), abs=0.03)


def test_scores_that_are_no_numbers_give_no_token() -> None:
    """A damaged row must end its own request, and the others get their tokens."""
    scores = torch.stack((SCORES, torch.tensor([0.0, float("nan"), 1.0, 2.0]), SCORES))
    drawn = Sampling(1.0)
    assert pick(sampler_of(a=None, b=None, c=None), "a", "b", "c", scores=scores) == (1, None, 1)
    assert pick(sampler_of(a=None, b=drawn, c=None), "a", "b", "c", scores=scores)[1] is None


def test_an_unknown_request_and_a_wrong_override_are_named() -> None:
    """Both are bugs of the caller, found before a token is lost."""
    sampler = sampler_of(a=None)
    sampler.remove("a")
    sampler.remove("a")
    with pytest.raises(EngineError, match="'a' is not open"):
        pick(sampler, "a")
    with pytest.raises(EngineError, match="Sampling, got float"):
        sampler.ingest("b", 0.7)


@pytest.mark.parametrize("temperature", [1e-45, 1e-320, 1e308])
def test_an_extreme_temperature_still_draws(temperature: float) -> None:
    """Scores divided by almost nothing are infinite, and infinities among them took the whole batch down."""
    picked = pick(sampler_of(a=Sampling(temperature, seed=1)), "a")[0]
    assert picked == 1 if temperature < 1 else picked in range(4)


def test_a_seed_that_cannot_be_opens_nothing() -> None:
    """A request that failed to open must not be known afterwards."""
    sampler = Sampler()
    with pytest.raises(ValueError, match="Overflow"):
        sampler.ingest("a", Sampling(1.0, seed=2**70))
    with pytest.raises(EngineError, match="'a' is not open"):
        pick(sampler, "a")
