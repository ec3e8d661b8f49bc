"""Requests that make room for others: away and back, value for value."""

from collections.abc import Iterator

import pytest
import torch

from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import KvPlan
from treadle.engine.resources.kv_step import KvClaim, KvStep
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import Refusal, ResourceStep, Segment, SubmoduleStep
from treadle.errors import EngineError


class Bench:
    """A cache with a host pool, filled with random numbers."""

    def __init__(self, pages: int = 6, host_pages: int = 6, dtype: torch.dtype = torch.float32) -> None:
        self.cache = PagedKvCache(KvShape(2, 3, 4), pages, 4, host_pages=host_pages, dtype=dtype)
        self.runner = StepRunner({"kv": self.cache})
        self.chance = torch.Generator().manual_seed(1)

    def step(self, *rows: tuple[str, int], part: ResourceStep | None = None) -> SubmoduleStep:
        return SubmoduleStep({"kv": part or ResourceStep()}, tuple(Segment(*row) for row in rows))

    def run(self, *rows: tuple[str, int], part: ResourceStep | None = None) -> None:
        step = self.step(*rows, part=part)
        assert self.runner.admit(step).ok
        self.runner.plan(step)
        plan = step.ctx.result("kv", KvPlan)
        for layer in range(2):
            keys, values = torch.rand(2, len(plan.slots), 3, 4, generator=self.chance).to(
                self.cache.store.dtype
            )
            self.cache.write(layer, keys, values, plan)
        self.runner.commit(step)

    def content(self, rid: str, label: str = "main") -> torch.Tensor:
        return self.cache.store.read(self.cache.ledger.stream(rid, label).pages)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.runner.check_integrity()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_comes_back_is_what_went_away_to_the_last_bit(dtype: torch.dtype) -> None:
    """The request must not notice, though others used its pages meanwhile and it stands on new ones."""
    bench = Bench(dtype=dtype)
    for rid in "ab":
        bench.runner.ingest_request(rid)
    bench.run(("a", 10))
    before, pages = bench.content("a"), bench.cache.ledger.stream("a").pages.tolist()
    assert bench.cache.offload("a") == 3
    assert bench.cache.is_offloaded("a")
    bench.run(("b", 24))
    assert not bench.cache.can_reload("a")
    bench.runner.remove_request("b")
    bench.runner.ingest_request("c")
    bench.run(("c", 2))
    bench.cache.reload("a")
    assert bench.cache.ledger.stream("a").pages.tolist() != pages
    assert torch.equal(bench.content("a"), before)
    bench.run(("a", 1))
    assert bench.cache.ledger.stream("a").stored == 11
    bench.runner.check_integrity()


def test_a_step_with_a_request_that_is_away_is_refused_until_it_is_back(bench: Bench) -> None:
    """Nothing is evicted or held for it: it is tried again after the reload."""
    for rid in "ab":
        bench.runner.ingest_request(rid)
    bench.run(("a", 4))
    bench.cache.offload("a")
    free = bench.cache.ledger.free
    forked = KvStep(segments=(Segment("b", 1),), before=(Fork("b", "main", to_request="a"),))
    for step in (bench.step(("a", 1), ("b", 1)), bench.step(("b", 1), part=forked)):
        outcome = bench.runner.admit(step)
        assert (outcome.ok, outcome.ready, outcome.reason) == (False, False, Refusal.OFFLOADING)
        assert bench.cache.ledger.free == free
    bench.run(("b", 1))
    bench.cache.reload("a")
    bench.run(("a", 1), ("b", 1))


def test_forks_come_back_sharing_what_they_shared(bench: Bench) -> None:
    """Their common pages wait once, and are taken once."""
    bench.runner.ingest_request("a")
    bench.run(("a", 8))
    bench.run(("a", 1), part=KvStep(after=(Fork("a", "b"),)))
    assert len(bench.cache.ledger.free) == 3
    before = bench.content("a", "b")
    assert bench.cache.offload("a") == 3
    bench.cache.reload("a")
    assert len(bench.cache.ledger.free) == 3
    assert torch.equal(bench.content("a", "b"), before)
    assert bench.cache.ledger.stream("a", "b").pages == bench.cache.ledger.stream("a").pages
    bench.run(("a", 1))
    assert torch.equal(bench.content("a", "b"), before)


def test_the_promise_goes_and_comes_with_the_request(bench: Bench) -> None:
    """While it is away its room serves others; when it comes back it can be carried to its end again."""
    bench.runner.ingest_request("a", {"kv": KvClaim(24)})
    bench.run(("a", 4))
    assert not bench.cache.can_promise(1)
    bench.cache.offload("a")
    bench.runner.ingest_request("b", {"kv": KvClaim(8)})
    assert not bench.cache.can_reload("a")
    with pytest.raises(EngineError, match="ask can_reload first"):
        bench.cache.reload("a")
    bench.runner.remove_request("b")
    bench.cache.reload("a")
    assert not bench.cache.can_promise(1)
    bench.run(("a", 20))


def test_only_what_is_stored_and_idle_can_go_away() -> None:
    """A step under way writes to the pages, and a full host pool takes nothing."""
    bench = Bench(host_pages=2)
    for rid in "abc":
        bench.runner.ingest_request(rid)
    assert not bench.cache.can_offload("a")
    assert not bench.cache.can_offload("nobody")
    bench.run(("a", 4), ("b", 8))
    step = bench.step(("a", 1))
    bench.runner.admit(step)
    assert not bench.cache.can_offload("a")
    bench.runner.rollback_admit(step)
    assert bench.cache.can_offload("a")
    bench.cache.offload("b")
    assert not bench.cache.can_offload("b")
    assert not bench.cache.can_offload("a")
    with pytest.raises(EngineError, match="ask can_offload first"):
        bench.cache.offload("a")
    bench.runner.remove_request("b")
    assert bench.cache.can_offload("a")
    bench.runner.check_integrity()


def test_a_row_without_a_new_page_is_under_way_too(bench: Bench) -> None:
    """It writes into the page that the request has."""
    bench.runner.ingest_request("a")
    bench.run(("a", 2))
    step = bench.step(("a", 1))
    bench.runner.admit(step)
    assert not bench.cache.can_offload("a")


def test_without_a_host_pool_nothing_goes_away() -> None:
    """Preemption then computes again."""
    cache = PagedKvCache(KvShape(1, 1, 1), 2, 4)
    cache.ingest("a", None)
    assert not cache.can_offload("a")
    assert not cache.can_reload("a")
    with pytest.raises(EngineError, match="no host pool"):
        cache.offload("a")
