"""The keys and values of all requests, in pages of one pool.

A page holds `page_size` tokens of one stream, in every layer at the same place. The runner's cycle
moves pages (see `pages`); the forward pass writes to slots and reads whole pages.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from treadle.engine.resources.host_pool import HostPool
from treadle.engine.resources.kv_abilities import KvAbilities
from treadle.engine.resources.kv_capture import KvCapture
from treadle.engine.resources.kv_offload import KvOffload
from treadle.engine.resources.kv_plan import DecodeRows, KvPlan, KvRow
from treadle.engine.resources.kv_prefixes import KvPrefixes
from treadle.engine.resources.kv_publication import KvPublisher
from treadle.engine.resources.kv_retrieval import KvRetrieval
from treadle.engine.resources.kv_step import KvClaim, forks_after, forks_before
from treadle.engine.resources.kv_store import KvShape, KvStore
from treadle.engine.resources.pages import PageLedger
from treadle.engine.resources.stage import Stage
from treadle.engine.resources.step import (
    NO_ROOM,
    READY,
    AdmitOutcome,
    Refusal,
    ResourceStep,
    Segment,
    StepContext,
)
from treadle.errors import ArgumentError, EngineError

_AWAY = AdmitOutcome(ok=False, ready=False, reason=Refusal.OFFLOADING)


class PagedKvCache(KvAbilities):
    """A resource: `pages` pages of `page_size` tokens, allocated once.

    Args:
        shape: of a token.
        pages: how many pages.
        page_size: tokens of a page.
        dtype: of keys and values.
        window: how far back a token sees, itself included; pages wholly behind it are given back.
        prefix_cache: keep the pages of past requests while there is room, for requests that begin alike.
        lazy_keys: generated tokens that may wait before they can be matched.
        host_pages: room for pages of offloaded requests; 0: none can be offloaded.
        path: the file for the pages, in shared memory best, where other processes are to read them.
        layout: names how the numbers stand in a page; only pages of the same layout are retrieved.

    Raises:
        ArgumentError: a pool without a page, pages without a token, a window without one or with a prefix
            cache: a page that was given back cannot lead a prefix.
    """

    depends_on: Collection[str] = ()

    def __init__(
        self,
        shape: KvShape,
        pages: int,
        page_size: int,
        *,
        dtype: torch.dtype = torch.float32,
        window: int | None = None,
        prefix_cache: bool = False,
        lazy_keys: int = 1,
        host_pages: int = 0,
        path: str | None = None,
        layout: str = "torch",
    ) -> None:
        if window is not None and prefix_cache:
            raise ArgumentError("a cache with a window gives pages back, so it can have no prefix cache")
        ledger = PageLedger(pages, page_size, window)
        self.store = KvStore(shape, pages, page_size, dtype, path, sink=path is None)
        publisher = KvPublisher(ledger, self.store, layout)
        host = HostPool(shape, host_pages, page_size, dtype) if host_pages else None
        super().__init__(
            ledger,
            KvPrefixes(ledger, lazy_keys) if prefix_cache else None,
            KvOffload(ledger, self.store, host) if host is not None else None,
            publisher,
            KvRetrieval(ledger, self.store, publisher.descriptor),
            KvCapture(self.store, window),
        )
        self._stage: Stage[KvPlan | DecodeRows] = Stage()

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """See `KvStore.layer`."""
        return self.store.layer(index)

    def write(self, index: int, keys: Tensor, values: Tensor, plan: KvPlan | DecodeRows) -> None:
        """See `KvStore.write`."""
        self.store.write(index, keys, values, plan)

    def can_promise(self, tokens: int) -> bool:
        """Whether `ingest` with a claim of so many tokens would succeed now."""
        return self.ledger.can_promise(tokens)

    def ingest(self, rid: str, overrides: object | None) -> None:
        """Open a request, with a `KvClaim` or without any promise.

        Raises:
            EngineError: the override is something else, or the claim cannot be promised.
        """
        if overrides is not None and not isinstance(overrides, KvClaim):
            raise EngineError(f"the KV cache takes a KvClaim, got {type(overrides).__name__}")
        self.ledger.open(rid, overrides.tokens if overrides else 0)
        if self.prefixes and overrides and overrides.layout:
            self.prefixes.ingest(rid, overrides.layout)

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        """Take the pages that the step lacks, blank, or none of them."""
        if self._is_away(step):
            return _AWAY
        for fork in forks_after(step):  # now, for a commit is too late to refuse
            self.ledger.check_fork(fork)
        self.ledger.fork(forks_before(step))
        if not self.ledger.can_take(step.rows):
            self.ledger.unfork(forks_before(step))
            return NO_ROOM
        fresh = self.ledger.take(step.rows)
        self.store.blank(fresh.pages)
        self.store.copy(fresh.copies)
        self._stage.reserved(step, ahead=ctx.is_preplan)
        return READY

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        """Give the step's pages back; the free list stands as before."""
        self.ledger.give_back(step.rows)
        self.ledger.unfork(forks_before(step))

    def plan(self, step: ResourceStep, ctx: StepContext) -> KvPlan | DecodeRows:
        """Slots for the new tokens, and each row's pages; of a captured step in the buffers of its slot.

        Raises:
            EngineError: a row was not admitted, or the step is captured and does not fit the buffers.
        """
        rows = [self._row(segment) for segment in step.rows]
        size = self.ledger.page_size
        plan = KvPlan.of(rows, size) if ctx.slot is None else self._capture.plan(rows)
        if ctx.is_preplan:
            self._stage.planned(plan)
            return plan
        return self._placed(plan, ctx.slot)

    def promote(self, step: ResourceStep, ctx: StepContext) -> KvPlan | DecodeRows:
        """See `PlansAhead`."""
        plan = self._stage.promote()
        return self.plan(step, ctx) if plan is None else self._placed(plan, ctx.slot)

    def clear_preplan(self) -> None:
        """See `PlansAhead`."""
        if step := self._stage.clear():
            self.ledger.give_back(step.rows)
            self.ledger.unfork(forks_before(step))

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        """The step's tokens are stored."""
        self.ledger.store(step.rows)
        self.ledger.fork(forks_after(step))
        self.ledger.settle((*forks_before(step), *forks_after(step)))
        if self.prefixes:
            self.prefixes.committed(step.rows)

    def remove(self, rid: str) -> None:
        """Free all pages of a request; those that the prefix cache owns too stay with it."""
        if self.prefixes:
            self.prefixes.remove(rid)
        if self._offloaded is not None:
            self._offloaded.remove(rid)
        self._retrieval.remove(rid)
        self.ledger.close(rid)

    def check_integrity(self) -> None:
        """The owners of every page are counted right, every promise is covered."""
        self.ledger.check_integrity()
        if self._offloaded is not None:
            self._offloaded.check_integrity()

    def _is_away(self, step: ResourceStep) -> bool:
        """Whether a request of the step was offloaded; none is, most of the time."""
        if self._offloaded is None or self._offloaded.empty:
            return False
        forks = (*forks_before(step), *forks_after(step))
        rids = {segment.request_id for segment in step.rows}
        rids.update(rid for fork in forks for rid in (fork.request_id, fork.target[0]))
        return any(map(self.is_offloaded, rids))

    def _placed(self, plan: KvPlan | DecodeRows, slot: int | None) -> KvPlan | DecodeRows:
        """The plan of the live step: that of a captured one stands in the buffers of its slot."""
        if slot is None or isinstance(plan, KvPlan):
            return plan
        return self._capture.place(slot, plan)

    def _row(self, segment: Segment) -> KvRow:
        rid, span, label = segment
        stream = self.ledger.stream(rid, label)
        used = self.ledger.pages_for(stream.stored + span) - stream.gone
        if used > len(stream.pages):
            owned = len(stream.pages)
            raise EngineError(f"request {rid!r} needs {used} pages, owns {owned}: admit before plan")
        return KvRow(stream.stored, span, stream.pages[:used], stream.gone)
