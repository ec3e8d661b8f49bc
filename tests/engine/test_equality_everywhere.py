"""Greedy tokens are those of transformers however the engine is set: 64 prompts of 16 to 256 tokens.

A setting is a way to cut, mix, keep, throw out and compute; none of them is a way to say something else.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.engine.reference import Prompt, english_prompts, greedy
from treadle.engine.engine import Engine
from treadle.engine.models.build import Kernels
from treadle.engine.requests import GenerationRequest
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.step import CachedPrefix
from treadle.engine.scheduler import Scheduler

# Most of it is the reference, which is slow to load and to run.
pytestmark = pytest.mark.timeout(900)

SIZES = [16 + at * 80 // 21 for at in range(64)]
KERNELS: tuple[Kernels, ...] = ("native", "torch")
FEW = slice(0, 10)
NEW, FEW_NEW = 24, 12
SETTINGS: dict[str, dict[str, Any]] = {
    "one by one": {"max_batch": 1},
    "five in small chunks": {"max_batch": 5, "token_budget": 23},
    "sixteen, a token each": {"max_batch": 16, "token_budget": 16, "prefix_cache": False},
    "all at once": {"max_batch": 64},
    "all at once, nothing kept": {"max_batch": 64, "token_budget": 64, "prefix_cache": False},
    "too small, computed again": {"max_batch": 16, "preemption": "recompute"},
    "too small, computed again, nothing kept": {
        "max_batch": 64,
        "token_budget": 77,
        "preemption": "recompute",
        "prefix_cache": False,
    },
    "too small, offloaded": {"max_batch": 16, "preemption": "offload"},
    "too small, offloaded, nothing kept": {"max_batch": 5, "preemption": "offload", "prefix_cache": False},
    "planned ahead": {"max_batch": 16, "token_budget": 100, "plan_ahead": True},
    "planned ahead, too small": {"max_batch": 16, "preemption": "offload", "plan_ahead": True},
    "in fixed shapes": {"max_batch": 16, "kernels": "torch", "buckets": (1, 2, 4, 8, 16)},
    "in fixed shapes, planned ahead, too small": {
        "max_batch": 16,
        "kernels": "torch",
        "buckets": (4, 16),
        "plan_ahead": True,
        "preemption": "recompute",
    },
}
CASES: list[tuple[str, Kernels]] = [
    (setting, kernels)
    for kernels in KERNELS
    for setting, options in SETTINGS.items()
    if options.get("kernels", kernels) == kernels
]


class Seen:
    """How often a request made room, and how many tokens were not computed because others had begun alike."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.preempted, self.served = 0, 0
        preempt, apply = Scheduler.preempt, PagedKvCache.apply_cached_prefix

        def preempting(scheduler: Scheduler) -> bool:
            done = preempt(scheduler)
            self.preempted += done
            return done

        def applying(
            cache: PagedKvCache, rid: str, node: str, walk: str, inputs: Sequence[int], prefix: CachedPrefix
        ) -> None:
            apply(cache, rid, node, walk, inputs, prefix)
            self.served += prefix.length

        monkeypatch.setattr(Scheduler, "preempt", preempting)
        monkeypatch.setattr(PagedKvCache, "apply_cached_prefix", applying)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


@pytest.fixture(scope="module")
def prompts(smollm: Engine) -> list[Prompt]:
    return english_prompts(smollm.tokenizer.encode, SIZES)


@pytest.fixture(scope="module")
def all_expected(reference: Any, prompts: list[Prompt]) -> list[tuple[int, ...]]:
    return [said.tokens for said in greedy(reference, prompts, NEW)]


@pytest.fixture(scope="module")
def few_expected(reference: Any, prompts: list[Prompt]) -> list[tuple[int, ...]]:
    return [said.tokens for said in greedy(reference, prompts[FEW], FEW_NEW)]


def load(setting: str, kernels: Kernels, tokens: int) -> Engine:
    """With a tenth of the room that `tokens` need where the setting wants too little of it."""
    options = {"kernels": kernels} | SETTINGS[setting]
    if "preemption" in options:
        options["cache_tokens"] = max(tokens // 10, max(SIZES) + NEW if tokens > 5000 else 96)
    if options.get("preemption") == "offload":
        options["host_tokens"] = 2 * options["cache_tokens"]
    return Engine.load("smollm2-135m-instruct", **options)


def check(
    setting: str,
    kernels: Kernels,
    prompts: Sequence[Prompt],
    expected: Sequence[tuple[int, ...]],
    new: int,
    seen: Seen,
) -> None:
    engine = load(setting, kernels, sum(map(len, prompts)) + new * len(prompts))
    # Those that begin alike do not stand beside each other in the pool.
    order = sorted(range(len(prompts)), key=lambda at: at * 7 % len(prompts))
    asked = [GenerationRequest(str(at), prompts[at], new, ignore_eos=True) for at in order]
    found = {int(each.id): each for each in engine.generate(asked)}
    assert {at: each.error for at, each in found.items()} == dict.fromkeys(order)
    assert [found[at].token_ids for at in range(len(prompts))] == list(expected)
    engine.node.runner.check_integrity()
    assert engine.node.cache.ledger.available == engine.node.cache.ledger.total
    assert (seen.preempted > 0) == ("preemption" in SETTINGS[setting])
    if not SETTINGS[setting].get("prefix_cache", True):
        assert not seen.served
    elif SETTINGS[setting]["max_batch"] <= 5:  # of more at once, some begin before others are computed
        assert seen.served


def test_prompts_are_of_all_sizes_and_some_begin_alike(prompts: list[Prompt]) -> None:
    """Otherwise page borders and the prefix cache would stay untried."""
    assert [len(prompt) for prompt in prompts] == SIZES
    assert (SIZES[0], SIZES[-1], len({size % 16 for size in SIZES})) == (16, 256, 16)
    assert len({prompt[:16] for prompt in prompts}) == 64 - 20


@pytest.mark.parametrize("setting", SETTINGS)
def test_few_prompts_say_the_same_in_every_setting(
    setting: str, prompts: list[Prompt], few_expected: list[tuple[int, ...]], seen: Seen
) -> None:
    """In short what the slow test does at length."""
    check(setting, "auto", prompts[FEW], few_expected, FEW_NEW, seen)


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "kernels"), CASES)
def test_all_prompts_say_the_same_in_every_setting(
    setting: str, kernels: Kernels, prompts: list[Prompt], all_expected: list[tuple[int, ...]], seen: Seen
) -> None:
    """Token for token, whatever the batch, the chunks, the prefix cache, the room and the code."""
    check(setting, kernels, prompts, all_expected, NEW, seen)
