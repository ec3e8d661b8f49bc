"""Toy engines with little room, and ways to break them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pytest
from torch import Tensor

from treadle.engine.engine import Engine
from treadle.engine.forward import ForwardPass
from treadle.engine.requests import Completion, Delta, GenerationRequest
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.step import StepContext
from treadle.engine.scheduler import Preemption

PREEMPTIONS: tuple[Preemption, ...] = get_args(Preemption)


def tight_engine(path: Path, preemption: Preemption = "never", **other: Any) -> Engine:
    """Fewer pages than its seats ask for, and steps that cut prompts."""
    options = {"max_batch": 4, "token_budget": 12, "cache_tokens": 80} | other
    host = 64 if preemption == "offload" else 0
    return Engine.load(str(path), preemption=preemption, host_tokens=host, **options)


def completions(
    engine: Engine, requests: Sequence[GenerationRequest], *, streamed: bool = False
) -> dict[str, Completion]:
    """How each request ended, exactly once; what was streamed makes up what it ended with."""
    told = list(engine.stream(requests) if streamed else engine.generate(requests))
    found = [each for each in told if isinstance(each, Completion)]
    assert sorted(each.id for each in found) == sorted(each.id for each in requests)
    if streamed:
        texts = {each.id: "" for each in requests}
        for each in told:
            texts[each.id] += each.text if isinstance(each, Delta) else ""
        assert texts == {each.id: each.text for each in found}
    assert_nothing_left(engine)
    return {each.id: each for each in found}


def assert_nothing_left(engine: Engine) -> None:
    """No request is open, and whoever comes next can have the whole pool."""
    cache, pool = engine.node.cache, engine.node.cache.ledger
    engine.node.runner.check_integrity()
    held = cache.holdings()
    assert not any(held.held.values())
    assert sorted({*held.free, *held.kept}) == list(range(pool.total))
    assert cache.can_promise(pool.total * pool.page_size)
    assert not engine.node.runner.staged


def assert_same(got: dict[str, Completion], expected: dict[str, Completion]) -> None:
    """All ended well, with the same tokens; in another batch torch adds up in another order."""
    assert {rid: each.error for rid, each in got.items()} == dict.fromkeys(expected)
    for rid, completion in expected.items():
        assert got[rid].token_ids == completion.token_ids
        for one, two in zip(got[rid].logprobs, completion.logprobs, strict=True):
            assert one.token == two.token
            assert one.logprob == pytest.approx(two.logprob, abs=1e-4)


class WatchedPass:
    """A pass of a node that calls back before and after it computes, with its number, from 0."""

    def __init__(
        self, inner: ForwardPass, before: Callable[[int], None], after: Callable[[int], None]
    ) -> None:
        self._inner, self._before, self._after = inner, before, after
        self._numbers = count()

    def make_attention(self) -> Resource:
        """See `ForwardPass`."""
        return self._inner.make_attention()

    def __call__(self, tokens: Tensor, sampled: Sequence[int], ctx: StepContext) -> Tensor:
        """See `ForwardPass`."""
        number = next(self._numbers)
        self._before(number)
        scores = self._inner(tokens, sampled, ctx)
        self._after(number)
        return scores


def watched(
    engine: Engine,
    *,
    before: Callable[[int], None] = lambda number: None,
    after: Callable[[int], None] = lambda number: None,
    **options: Any,
) -> Engine:
    """An engine on the same node, whose passes call back."""
    node = replace(engine.node, compute=WatchedPass(engine.node.compute, before, after))
    return Engine(node, engine.tokenizer, **{"max_batch": 4, "token_budget": 12} | options)


def failing(
    engine: Engine, fails: Callable[[int], Exception | None], *, after: bool = False, **options: Any
) -> Engine:
    """An engine on the same node, whose passes fail with the error for their number, if there is one.

    `after`: when the pass has computed, and not before.
    """

    def fail(number: int) -> None:
        if (error := fails(number)) is not None:
            raise error

    return watched(engine, **{"after" if after else "before": fail}, **options)
