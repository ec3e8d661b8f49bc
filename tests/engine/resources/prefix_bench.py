"""A KV cache with a prefix cache and a runner, for tests of prefixes."""

from collections.abc import Sequence

import torch

from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import KvPlan
from treadle.engine.resources.kv_step import KvClaim
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.prefix_layout import PrefixLayout
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import CachedPrefix, ResourceStep, Segment, SubmoduleStep

PAGE = 16
PROMPT = list(range(100))


class Bench:
    """A cache with a runner, and the few things that these tests do with them."""

    def __init__(self, pages: int = 40, *, lazy_keys: int = 1, host_pages: int = 0) -> None:
        self.cache = PagedKvCache(
            KvShape(1, 1, 1), pages, PAGE, prefix_cache=True, lazy_keys=lazy_keys, host_pages=host_pages
        )
        self.runner = StepRunner({"kv": self.cache}, {"node": ["kv"]})

    def open(self, rid: str, layout: PrefixLayout | None = None, tokens: int = 0) -> None:
        self.runner.ingest_request(rid, {"kv": KvClaim(tokens, layout)})

    def ask(self, rid: str, inputs: Sequence[int], walk: str = "walk") -> CachedPrefix | None:
        return self.runner.resolve_cached_prefix(rid, "node", walk, inputs)

    def apply(self, rid: str, inputs: Sequence[int], walk: str = "walk") -> CachedPrefix | None:
        """Ask, agree, and take over a walk that is served whole."""
        prefix = self.ask(rid, inputs, walk)
        if prefix is not None:
            self.runner.apply_cached_prefix(rid, "node", walk, inputs, prefix)
            if prefix.whole:
                self.runner.complete_cached_walk(rid, "node", walk)
        return prefix

    def run(self, rid: str, span: int) -> KvPlan:
        step = SubmoduleStep({"kv": ResourceStep()}, (Segment(rid, span),))
        assert self.runner.admit(step).ok
        self.runner.plan(step)
        plan = step.ctx.result("kv", KvPlan)
        content = torch.arange(span, dtype=torch.float32)[:, None, None] + 1
        self.cache.write(0, content, content, plan)
        self.runner.commit(step)
        return plan

    def prefill(self, rid: str, inputs: Sequence[int]) -> CachedPrefix | None:
        """Open a request and store its whole prompt, as far as it is not cached."""
        self.open(rid)
        prefix = self.apply(rid, inputs)
        self.run(rid, len(inputs) - (prefix.length if prefix else 0))
        return prefix

    def pages(self, rid: str) -> list[int]:
        return self.cache.ledger.stream(rid).pages.tolist()

    def owners(self, pages: Sequence[int]) -> list[int]:
        return [self.cache.ledger.accounts.pool.owners(page) for page in pages]

    def lease(self, rid: str) -> list[int]:
        return list(self.cache.lease_cached_prefix(rid, "node", "walk"))
