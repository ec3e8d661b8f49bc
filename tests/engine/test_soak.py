"""Thousands of requests of all kinds: none is lost, and in the end nothing is left of any.

Their lengths, beginnings, options and ends are drawn; some are refused, some are aborted, and now and then
a pass fails. `TREADLE_TEST_SEED` draws others.
"""

import gc
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.conftest import WriteToy
from tests.engine.toys import PREEMPTIONS, assert_nothing_left, failing, tight_engine
from treadle.engine.engine import Engine
from treadle.engine.generation import Generation
from treadle.engine.requests import Completion, Delta, GenerationRequest
from treadle.engine.resources.accounts import Account
from treadle.engine.resources.kv_prefixes import Known
from treadle.engine.resources.sampler import Voice
from treadle.engine.resources.streams import Stream
from treadle.engine.scheduler import Preemption

SEED = int(os.environ.get("TREADLE_TEST_SEED", "20261130"))
POOL, CONTEXT, MOST_PROMPT, MOST_NEW = 160, 256, 70, 24
FAULT = "a fault of the machine"
OF_A_REQUEST = (Generation, Voice, Known, Account, Stream)
REFUSED = {
    "empty": "the prompt is empty",
    "context": f"the model's context {CONTEXT}",
    "pool": f"the cache has {POOL}",
    "unknown": "unknown token id",
    "unknown stop": "unknown token id",
}


@pytest.fixture(scope="module")
def path(write_toy: WriteToy) -> Path:
    return write_toy(head_width=16, context=CONTEXT)


class Draw:
    """Draws requests; the part of an id before the colon says of which kind it is."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._beginnings = [self._tokens(60) for _ in range(5)]
        self._count = 0

    def request(self) -> GenerationRequest:
        """The next one; one of eight is to be refused."""
        self._count += 1
        kind = self._chance.choice(list(REFUSED)) if self._chance.random() < 1 / 8 else "good"
        prompt, options = self._prompt(), self._options()
        if kind == "unknown stop":
            options["stop_tokens"] = (7, 263)
        elif kind != "good":
            tokens = {"empty": 0, "context": CONTEXT, "pool": POOL + 1, "unknown": 3}[kind]
            prompt = (*self._tokens(tokens - 1), 263) if kind == "unknown" else self._tokens(tokens)
        return GenerationRequest(f"{kind}:{self._count}", prompt, **options)

    def _tokens(self, count: int) -> tuple[int, ...]:
        return tuple(self._chance.randrange(3, 263) for _ in range(count))

    def _prompt(self) -> tuple[int, ...]:
        """Of each length; half of them begin as others do."""
        size = self._chance.randint(1, MOST_PROMPT)
        common = self._chance.choice(self._beginnings)[: self._chance.choice((0, 0, 17, size, 60))]
        return (*common, *self._tokens(size))[:size]

    def _options(self) -> dict[str, Any]:
        chance = self._chance
        return {
            "max_new_tokens": chance.randint(1, MOST_NEW),
            "stop": chance.choice(((), (), ("e", "in"), ("never there",))),
            "stop_tokens": chance.choice(((), self._tokens(9))),
            "ignore_eos": chance.random() < 0.5,
            "temperature": chance.choice((0.0, 0.0, 0.7, 1.3)),
            "top_k": chance.choice((0, 0, 20)),
            "top_p": chance.choice((1.0, 0.9)),
            "repetition_penalty": chance.choice((1.0, 1.0, 1.2)),
            "seed": chance.randrange(2**40),
            "logprobs": chance.choice((None, None, 2)),
        }


@dataclass
class Soak:
    """Asks an engine, and keeps count of how requests end.

    Attributes:
        engine: is asked.
        chance: draws what is asked, and who is aborted.
        reasons: how many ended so.
        kept: some that ended by themselves, to be compared.
    """

    engine: Engine
    chance: random.Random
    reasons: Counter[str] = field(default_factory=Counter)
    kept: list[tuple[GenerationRequest, tuple[int, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._draw = Draw(self.chance)
        self._open: dict[str, GenerationRequest] = {}
        self._unwanted: set[str] = set()
        self._texts: dict[str, str] = {}

    def ask(self, count: int, *, streamed: bool) -> None:
        """So many requests, each of which must be completed once, as its kind says."""
        ask = self.engine.stream if streamed else self.engine.generate
        for told in ask(self._drawn(count)):
            if isinstance(told, Delta):
                self._texts[told.id] += told.text
            else:
                self._ended(told, streamed)
            if self._open and self.chance.random() < (0.005 if streamed else 0.05):
                self._unwanted.add(unwanted := self.chance.choice(list(self._open)))
                self.engine.abort(unwanted)
        assert not self._open
        self._unwanted.clear()
        assert_nothing_left(self.engine)

    def _drawn(self, count: int) -> Iterator[GenerationRequest]:
        for _ in range(count):
            request = self._draw.request()
            self._open[request.id] = request
            self._texts[request.id] = ""
            yield request

    def _ended(self, done: Completion, streamed: bool) -> None:
        request, text = self._open.pop(done.id), self._texts.pop(done.id)
        assert text == (done.text if streamed else "")
        self.reasons[done.finish_reason] += 1
        kind = done.id.split(":")[0]
        if kind in REFUSED:
            assert (done.finish_reason, done.token_ids) == ("error", ())
            assert REFUSED[kind] in str(done.error)
            return
        assert done.finish_reason != "abort" or done.id in self._unwanted
        assert done.error == (f"the forward pass failed: {FAULT}" if done.finish_reason == "error" else None)
        assert len(done.token_ids) <= request.max_new_tokens
        assert len(done.logprobs) == len(done.token_ids) * (request.logprobs is not None)
        assert not any(stop in done.text for stop in request.stop)
        if done.finish_reason in ("stop", "length") and self.chance.random() < 0.01:
            self.kept.append((request, done.token_ids))


def living() -> int:
    """Objects of which each request has its own."""
    gc.collect()
    return sum(type(each) in OF_A_REQUEST for each in gc.get_objects())


def assert_said_alone(path: Path, kept: list[tuple[GenerationRequest, tuple[int, ...]]]) -> None:
    """In an engine with room for anything."""
    engine = tight_engine(path, max_batch=1, cache_tokens=CONTEXT, prefix_cache=False)
    for request, tokens in kept:
        assert [each.token_ids for each in engine.generate([request])] == [tokens]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_ten_thousand_requests_leave_nothing_behind(path: Path, preemption: Preemption) -> None:
    """No page, no object, no thread and no memory; whoever was not disturbed said what it says alone."""
    print(f"TREADLE_TEST_SEED={SEED}")
    before = living()
    engine = tight_engine(path, preemption, cache_tokens=POOL)
    one_by_one, ahead = (
        failing(
            engine,
            lambda at: RuntimeError(FAULT) if at % 997 == 996 else None,
            preemption=preemption,
            plan_ahead=each,
        )
        for each in (False, True)
    )
    soak = Soak(ahead, random.Random(SEED))
    soak.ask(1500, streamed=True)
    first = living(), threading.active_count(), psutil.Process().memory_info().rss
    blocks = sys.getallocatedblocks()
    for turn in range(17):
        soak.engine = (one_by_one, ahead)[turn % 2]
        soak.ask(500, streamed=turn % 4 > 1)
    last = living(), threading.active_count(), psutil.Process().memory_info().rss
    assert sum(soak.reasons.values()) == 10_000
    assert min(soak.reasons[each] for each in ("stop", "length", "abort", "error")) > 100
    assert last[:2] == first[:2]
    assert last[0] == before
    assert last[2] - first[2] < 64 << 20
    assert sys.getallocatedblocks() - blocks < 4000  # of 8,500 requests and those kept to be compared
    assert_said_alone(path, soak.kept)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**32),
    preemption=st.sampled_from(PREEMPTIONS),
    cached=st.booleans(),
    seats=st.integers(1, 7),
    buckets=st.sampled_from([(), (1, 2, 4), (3, 8)]),
    plan_ahead=st.booleans(),
    faults=st.sets(st.integers(0, 150), max_size=2),
)
def test_whatever_is_asked_leaves_nothing_behind(
    path: Path,
    seed: int,
    preemption: Preemption,
    cached: bool,
    seats: int,
    buckets: tuple[int, ...],
    plan_ahead: bool,
    faults: set[int],
) -> None:
    """In short what the slow test does at length, in any setting."""
    options: dict[str, Any] = {"max_batch": seats, "preemption": preemption, "plan_ahead": plan_ahead}
    kernels = "torch" if buckets else "auto"
    engine = tight_engine(
        path, cache_tokens=POOL, prefix_cache=cached, kernels=kernels, buckets=buckets, **options
    )
    broken = failing(engine, lambda at: RuntimeError(FAULT) if at in faults else None, **options)
    soak = Soak(broken, random.Random(seed))
    soak.ask(25, streamed=True)
    soak.ask(25, streamed=False)
    assert sum(soak.reasons.values()) == 50
    assert_said_alone(path, soak.kept)
