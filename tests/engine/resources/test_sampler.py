"""The sampler as a resource: greedy, drawn, refused, rolled back, and blind to batch mates."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.engine.resources.sampler import Sampler
from treadle.engine.resources.sampling import Pick, Sampling
from treadle.engine.resources.step import ResourceStep, Segment, StepContext
from treadle.errors import EngineError

SCORES = torch.tensor([0.0, 3.0, 1.0, 2.0])


def sampler_of(**wishes: Sampling | None) -> Sampler:
    sampler = Sampler()
    for rid, wish in wishes.items():
        sampler.ingest(rid, wish)
    return sampler


def picks(sampler: Sampler, *rids: str, scores: torch.Tensor | None = None) -> tuple[Pick | None, ...]:
    """What a step for these rows picks; committed."""
    step = ResourceStep(tuple(Segment(rid, 1) for rid in rids))
    plan = sampler.plan(step, StepContext())
    sampler.commit(step, StepContext())
    return plan.sample(SCORES.expand(len(rids), 4) if scores is None else scores)


def pick(sampler: Sampler, *rids: str, scores: torch.Tensor | None = None) -> tuple[int | None, ...]:
    return tuple(each and each.token for each in picks(sampler, *rids, scores=scores))


def test_without_a_wish_the_likeliest_is_taken() -> None:
    """Greedy is what can be compared with a reference."""
    assert pick(sampler_of(a=None, b=Sampling(0.0)), "b", "a") == (1, 1)


WISH = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.5, 1.5]),
    seed=st.integers(-5, 5),
    top_k=st.sampled_from([0, 1, 7, 100]),
    top_p=st.sampled_from([0.3, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.2]),
    repetition_penalty=st.sampled_from([0.8, 1.0, 1.4]),
    logprobs=st.sampled_from([None, 0, 3]),
    past=st.sampled_from([(), (0, 3), (5, 5)]),
)


@settings(max_examples=60, deadline=None)
@given(
    wish=WISH,
    mates=st.lists(WISH, max_size=5),
    place=st.integers(0, 5),
    seed=st.integers(0, 999),
    damaged=st.booleans(),
)
def test_tokens_and_logs_do_not_depend_on_batch_mates(
    wish: Sampling, mates: list[Sampling], place: int, seed: int, damaged: bool
) -> None:
    """The same request must give the same text on a busy engine as on an idle one, to the last bit."""
    chance = torch.Generator().manual_seed(seed)
    alone, among = sampler_of(a=wish), sampler_of(a=wish, **{f"m{at}": each for at, each in enumerate(mates)})
    rids = [f"m{at}" for at in range(len(mates))]
    rids.insert(min(place, len(mates)), "a")
    for _ in range(4):
        scores = torch.randn(len(rids), 33, generator=chance)
        if damaged:
            scores[[rid != "a" for rid in rids]] = torch.nan
        row = rids.index("a")
        assert picks(among, *rids, scores=scores)[row] == picks(alone, "a", scores=scores[row : row + 1])[0]


def test_draws_go_on_where_they_were_interrupted() -> None:
    """A request that was preempted and computed again must not repeat its draws."""
    whole = sampler_of(a=Sampling(1.0, 7, repetition_penalty=1.3, past=(2,)))
    tokens = [pick(whole, "a")[0] for _ in range(8)]
    first = tuple(token for token in tokens[:5] if token is not None)
    again = sampler_of(a=Sampling(1.0, 7, repetition_penalty=1.3, past=(2, *first), picked=5))
    assert [pick(again, "a")[0] for _ in range(3)] == tokens[5:]


def test_a_step_that_is_rolled_back_drew_nothing() -> None:
    """Its rows draw what they would have drawn."""
    sampler, expected = (sampler_of(a=Sampling(1.0, 3, repetition_penalty=9.0), b=None) for _ in range(2))
    step = ResourceStep((Segment("a", 1), Segment("b", 1)))
    sampler.plan(step, StepContext())
    sampler.remove("b")
    sampler.rollback(step, StepContext())
    assert [pick(sampler, "a") for _ in range(6)] == [pick(expected, "a") for _ in range(6)]


def test_a_step_may_be_committed_and_the_next_one_planned_before_it_picks() -> None:
    """The draws of a step are known when it is planned: the next one is staged while the model computes."""
    sampler, expected = (sampler_of(a=Sampling(1.0, 3)) for _ in range(2))
    step, ctx = ResourceStep((Segment("a", 1),)), StepContext(is_preplan=True)
    first = sampler.plan(step, StepContext())
    sampler.commit(step, StepContext())
    sampler.plan(step, ctx)
    drawn = first.sample(SCORES[None])
    second = sampler.promote(step, StepContext())
    sampler.commit(step, StepContext())
    assert [*drawn, *second.sample(SCORES[None])] == [*picks(expected, "a"), *picks(expected, "a")]


def test_a_repeated_token_is_weighed_down() -> None:
    """What the request picked itself counts as seen, from the next step on."""
    sampler = sampler_of(a=Sampling(repetition_penalty=10.0))
    assert [pick(sampler, "a")[0] for _ in range(3)] == [1, 3, 2]


def test_logs_come_when_asked_for() -> None:
    """Of the picked token and of the likeliest, whether drawn or not."""
    sampler = sampler_of(a=Sampling(logprobs=2), b=None)
    asked, plain = picks(sampler, "a", "b")
    logs = torch.log_softmax(SCORES, 0)
    assert asked is not None
    assert asked.logprob == pytest.approx(float(logs[1]))
    assert [token for token, _ in asked.top] == [1, 3]
    assert plain == Pick(1)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
@pytest.mark.parametrize("wish", [None, Sampling(1.0), Sampling(repetition_penalty=2.0, logprobs=1)])
def test_scores_that_are_no_numbers_give_no_token(wrong: float, wish: Sampling | None) -> None:
    """A damaged row must end its own request, and the others get their tokens."""
    scores = torch.stack((SCORES, torch.tensor([0.0, wrong, 1.0, 2.0]), SCORES))
    assert pick(sampler_of(a=None, b=wish, c=None), "a", "b", "c", scores=scores) == (1, None, 1)


def test_a_row_where_no_token_can_be_gives_none() -> None:
    """Every token forbidden leaves nothing to pick."""
    scores = torch.full((1, 4), -torch.inf)
    assert pick(sampler_of(a=Sampling(1.0)), "a", scores=scores) == (None,)


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


def test_a_penalty_that_overflows_ends_its_own_request() -> None:
    """A score that became infinite is no score, and the others go on."""
    sampler = sampler_of(a=Sampling(1.0, repetition_penalty=1e-300, past=(1,)), b=None)
    assert pick(sampler, "a", "b") == (None, 1)
