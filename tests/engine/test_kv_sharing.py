"""The model computes the same whether its keys and values were computed, shared, forked or moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from treadle.engine.engine import Engine
from treadle.engine.forward import ATTENTION, KV, POSITIONS, ForwardPass, forward_pass
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_step import KvStep
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.positions import Positions
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import ResourceStep, Segment, SubmoduleStep

NODE, WALK, PAGE = "node", "walk", 16
PROMPT = [3 + at * 7 % 250 for at in range(50)]


@dataclass(frozen=True)
class Bench:
    """A toy model over a cache with everything, and greedy decoding by hand."""

    runner: StepRunner
    cache: PagedKvCache
    compute: ForwardPass

    @classmethod
    def of(cls, path: Path) -> "Bench":
        model = Engine.load(str(path), max_batch=1, token_budget=16, cache_tokens=16).node.model
        config = model.config
        shape = KvShape(config.layers, config.kv_heads, config.head_width)
        cache = PagedKvCache(shape, 24, PAGE, prefix_cache=True, host_pages=12)
        compute = forward_pass(model, cache)
        resources: dict[str, Resource] = {
            KV: cache,
            POSITIONS: Positions(config.context, config.head_width, config.rope_base, kv=KV),
            ATTENTION: compute.make_attention(),
        }
        return cls(StepRunner(resources, {NODE: list(resources)}), cache, compute)

    def step(self, rows: Sequence[tuple[str, str, Sequence[int]]], kv: KvStep | None = None) -> list[int]:
        """The likeliest next token of each row (request, label, tokens)."""
        segments = tuple(Segment(rid, len(tokens), label) for rid, label, tokens in rows)
        step = SubmoduleStep(
            {KV: kv or KvStep(), POSITIONS: ResourceStep(), ATTENTION: ResourceStep()}, segments
        )
        assert self.runner.admit(step).ok
        self.runner.plan(step)
        tokens = torch.tensor([token for _, _, row in rows for token in row])
        ends = torch.tensor([len(row) for _, _, row in rows]).cumsum(0) - 1
        with torch.inference_mode():
            scores = self.compute(tokens, ends.tolist(), step.ctx)
        self.runner.commit(step)
        return [int(token) for token in scores.argmax(dim=-1)]

    def prefill(self, rid: str, prompt: Sequence[int]) -> tuple[int, int]:
        """The first token after the prompt, and how much of the prompt was not computed."""
        self.runner.ingest_request(rid)
        prefix = self.runner.resolve_cached_prefix(rid, NODE, WALK, prompt)
        served = prefix.length if prefix else 0
        if prefix:
            self.runner.apply_cached_prefix(rid, NODE, WALK, prompt, prefix)
        return self.step([(rid, "main", prompt[served:])])[0], served

    def decode(self, rid: str, token: int, count: int, label: str = "main") -> list[int]:
        """So many tokens after this one, itself first."""
        tokens = [token]
        for _ in range(count):
            if label == "main":
                self.runner.extend_prefix_chains(rid, NODE, WALK, tokens[-1:])
            tokens += self.step([(rid, label, tokens[-1:])])
        return tokens


@pytest.fixture
def bench(toy_path: Path) -> Bench:
    return Bench.of(toy_path)


@pytest.fixture
def alone(toy_path: Path) -> list[int]:
    """What the model says when nothing is shared or moved."""
    bench = Bench.of(toy_path)
    return bench.decode("a", bench.prefill("a", PROMPT)[0], 30)


def test_a_cached_beginning_gives_the_same_tokens(bench: Bench, alone: list[int]) -> None:
    """Beside the request that computed it, after it, and as the next turn of its text."""
    first, served = bench.prefill("a", PROMPT)
    assert served == 0
    again, served = bench.prefill("b", PROMPT)
    assert (again, served) == (first, 48)
    assert bench.decode("a", first, 20) == alone[:21]
    assert bench.decode("b", again, 20) == alone[:21]
    for rid in "ab":
        bench.runner.remove_request(rid)
    after, served = bench.prefill("c", [*PROMPT, *alone[:20]])
    assert (after, served) == (alone[20], 64)
    assert bench.decode("c", after, 5) == alone[20:26]
    bench.runner.check_integrity()


def test_a_request_that_went_away_and_came_back_gives_the_same_tokens(bench: Bench, alone: list[int]) -> None:
    """While it is away its pages are others', and it comes back to other pages."""
    tokens = bench.decode("a", bench.prefill("a", PROMPT)[0], 9)
    for turn in range(3):
        bench.cache.offload("a")
        bench.prefill(f"other {turn}", [5] * (17 + turn))
        bench.cache.reload("a")
        tokens += bench.decode("a", tokens[-1], 7)[1:]
    assert tokens == alone[:31]
    bench.runner.check_integrity()


def test_forks_go_on_as_the_stream_that_they_forked_from(bench: Bench, alone: list[int]) -> None:
    """Each says what it would have said alone, in one batch with the others, whoever writes first."""
    first = bench.prefill("a", PROMPT)[0]
    forks = KvStep(before=(Fork("a", "same"), Fork("a", "other")))
    rows = [("a", "main", [first]), ("a", "other", [7]), ("a", "same", [first])]
    tokens = [[first], [7], [first]]
    following = bench.step(rows, forks)
    for _ in range(20):
        for row, token in zip(tokens, following, strict=True):
            row.append(token)
        following = bench.step(
            [(rid, label, row[-1:]) for (rid, label, _), row in zip(rows, tokens, strict=True)]
        )
    assert tokens[0] == tokens[2] == alone[:21]
    bench.runner.ingest_request("b")
    expected = bench.step([("b", "main", [*PROMPT, 7])])
    assert tokens[1][1] == expected[0]
    bench.runner.check_integrity()
