"""Log probabilities are those of transformers, and what is drawn does not depend on who else is there."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.reference import Said, english_prompts, greedy
from tests.engine.resources.test_sampling import SEED, likelihood
from treadle.engine.engine import Engine
from treadle.engine.models.build import Kernels
from treadle.engine.requests import Completion, GenerationRequest

# Most of it is the reference, which is slow to load.
pytestmark = pytest.mark.timeout(400)

NEAR = 1e-4
NEW, TOP = 8, 5
SIZES = (16, 17, 31, 60, 64, 90)
KERNELS: tuple[Kernels, ...] = ("torch", "native")


@pytest.fixture(scope="module")
def engines() -> dict[Kernels, Engine]:
    return {
        each: Engine.load("smollm2-135m-instruct", kernels=each, max_batch=16, cache_tokens=4096)
        for each in KERNELS
    }


@pytest.fixture(scope="module")
def prompts(engines: dict[Kernels, Engine]) -> list[tuple[int, ...]]:
    return english_prompts(engines["torch"].tokenizer.encode, SIZES)


@pytest.fixture(scope="module")
def expected(reference: Any, prompts: list[tuple[int, ...]]) -> list[Said]:
    return greedy(reference, prompts, NEW)


def told(engine: Engine, requests: Sequence[GenerationRequest]) -> list[Completion]:
    """In the order of the requests."""
    found = {each.id: each for each in engine.generate(requests)}
    return [found[each.id] for each in requests]


def assert_logs_of(said: Said, completion: Completion) -> None:
    """That of each token, and the likeliest ones; of two that are equally likely either may come first."""
    assert completion.token_ids == said.tokens
    for logprob, row in zip(completion.logprobs, said.logits.log_softmax(-1), strict=True):
        assert logprob.logprob == pytest.approx(float(row[logprob.token]), abs=NEAR)
        assert len({token for token, _ in logprob.top}) == TOP
        best = row.topk(TOP).values.tolist()
        assert [value for _, value in logprob.top] == pytest.approx(best, abs=NEAR)
        assert [float(row[token]) for token, _ in logprob.top] == pytest.approx(best, abs=NEAR)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("kernels", KERNELS)
def test_logs_are_those_of_transformers(
    engines: dict[Kernels, Engine],
    prompts: list[tuple[int, ...]],
    expected: list[Said],
    kernels: Kernels,
    together: bool,
) -> None:
    """To 1e-4, alone and in a batch: whoever scores texts by them gets what the reference would say."""
    requests = [
        GenerationRequest(str(at), prompt, NEW, ignore_eos=True, logprobs=TOP)
        for at, prompt in enumerate(prompts)
    ]
    groups = [requests] if together else [[each] for each in requests]
    found = [each for group in groups for each in told(engines[kernels], group)]
    for said, completion in zip(expected, found, strict=True):
        assert_logs_of(said, completion)


def test_what_is_drawn_reports_the_model_s_own_chances(
    engines: dict[Kernels, Engine], prompts: list[tuple[int, ...]], expected: list[Said]
) -> None:
    """Of the first token, before temperature and filters, which only change what is drawn."""
    requests = [
        GenerationRequest(str(at), prompt, 1, temperature=1.7, seed=at, top_p=0.9, logprobs=TOP)
        for at, prompt in enumerate(prompts)
    ]
    for said, completion in zip(expected, told(engines["native"], requests), strict=True):
        first = completion.token_ids
        assert_logs_of(Said(first, said.logits[:1]), completion)


def drawn(at: int, kind: int, prompt: tuple[int, ...]) -> GenerationRequest:
    """A request of one of six kinds."""
    options: dict[str, Any] = [
        {"temperature": 1.0},
        {"temperature": 0.7, "top_p": 0.8},
        {"temperature": 1.4, "top_k": 20},
        {"temperature": 1.0, "repetition_penalty": 1.3},
        {"temperature": 0.9, "top_k": 50, "top_p": 0.95, "repetition_penalty": 0.8},
        {"repetition_penalty": 1.2},
    ][kind]
    return GenerationRequest(str(at), prompt, NEW, ignore_eos=True, seed=100 + at, logprobs=2, **options)


@pytest.mark.parametrize("kernels", KERNELS)
def test_drawn_texts_are_the_same_alone_and_among_others(
    engines: dict[Kernels, Engine], prompts: list[tuple[int, ...]], kernels: Kernels
) -> None:
    """A text that somebody drew on a busy engine can be drawn again on an idle one."""
    requests = [drawn(at, at % 6, prompts[at % len(prompts)]) for at in range(14)]
    together = told(engines[kernels], requests)
    assert len({each.token_ids for each in together}) > 10
    for request, completion in zip(requests, together, strict=True):
        assert told(engines[kernels], [request])[0].token_ids == completion.token_ids


@settings(max_examples=8)
@given(
    kinds=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=16), place=st.data()
)
def test_who_else_draws_changes_no_log_of_compiled_code(
    engines: dict[Kernels, Engine],
    prompts: list[tuple[int, ...]],
    kinds: list[tuple[int, int]],
    place: st.DataObject,
) -> None:
    """It makes each sum in one order: tokens and logs are the same to the last bit."""
    requests = [drawn(at, kind, prompts[which]) for at, (kind, which) in enumerate(kinds)]
    chosen = place.draw(st.integers(0, len(requests) - 1))
    together = told(engines["native"], requests)
    assert told(engines["native"], requests[chosen : chosen + 1]) == together[chosen : chosen + 1]


def test_seeds_draw_by_the_model_s_chances(toy_engine: Engine) -> None:
    """Chi-square over 1,500 requests that differ by their seeds: one seed a request is how texts are made."""
    prompt = tuple(range(20, 40))
    (asked,) = told(toy_engine, [GenerationRequest("a", prompt, 1, logprobs=12)])
    chances = {token: math.exp(logprob) for token, logprob in asked.logprobs[0].top}
    times = 1500
    requests = [
        GenerationRequest(str(at), prompt, 1, temperature=1.0, top_k=len(chances), seed=SEED + at)
        for at in range(times)
    ]
    counts = Counter(each.token_ids[0] for each in told(toy_engine, requests))
    assert set(counts) <= set(chances)
    expected = [times * chance / sum(chances.values()) for chance in chances.values()]
    assert likelihood([counts[token] for token in chances], expected) > 1e-3, f"seed {SEED}"
