"""The keys and values of all requests, in pages of one pool.

A page holds `page_size` tokens of one stream, in every layer at the same place. The runner's cycle
moves pages (see `pages`); the forward pass writes to slots and reads whole pages.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.resources.pages import PageLedger
from treadle.engine.resources.step import NO_ROOM, READY, AdmitOutcome, ResourceStep, Segment, StepContext
from treadle.errors import EngineError


@dataclass(frozen=True)
class KvShape:
    """What one token leaves behind: keys and values of `heads` x `width` numbers in each layer."""

    layers: int
    heads: int
    width: int


@dataclass(frozen=True)
class KvClaim:
    """Override at ingest: the most tokens that the request will ever store."""

    tokens: int


@dataclass(frozen=True)
class KvRow:
    """One segment as the cache sees it: `span` tokens after `start` stored ones, over `pages`."""

    start: int
    span: int
    pages: tuple[int, ...]


@dataclass(frozen=True)
class KvPlan:
    """Where the step's tokens go: `slots` int64 (tokens,), rows in the order of the segments."""

    slots: Tensor
    rows: tuple[KvRow, ...]
    page_size: int


class PagedKvCache:
    """A resource: `pages` pages of `page_size` tokens, float32, allocated once.

    Raises:
        ArgumentError: a pool without a page, or pages without a token.
    """

    depends_on: Collection[str] = ()

    def __init__(self, shape: KvShape, pages: int, page_size: int) -> None:
        self.ledger = PageLedger(pages, page_size)
        # Not zeros: memory that no page has used yet is not taken from the machine.
        self._store = torch.empty(shape.layers, 2, shape.heads, pages, page_size, shape.width)
        self._slots = self._store.view(shape.layers, 2, shape.heads, pages * page_size, shape.width)

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer, each float32 (heads, pages, page_size, width); not a copy."""
        keys, values = self._store[index]
        return keys, values

    def write(self, index: int, keys: Tensor, values: Tensor, plan: KvPlan) -> None:
        """Put the step's keys and values, float32 (tokens, heads, width), into the planned slots."""
        for place, new in enumerate((keys, values)):
            self._slots[index, place].index_copy_(1, plan.slots, new.transpose(0, 1))

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

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        """Take the pages that the step lacks, blank, or none of them."""
        if not self.ledger.can_take(step.rows):
            return NO_ROOM
        # The end of a page is read before it is written, at weight 0; a NaN of the last owner times 0 is NaN.
        self._store[:, :, :, self.ledger.take(step.rows)] = 0.0
        return READY

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        """Give the step's pages back; the free list stands as before."""
        self.ledger.give_back(step.rows)

    def plan(self, step: ResourceStep, ctx: StepContext) -> KvPlan:
        """Slots for the new tokens, and each row's pages.

        Raises:
            EngineError: a row was not admitted.
        """
        rows = tuple(self._row(segment) for segment in step.rows)
        slots = [slot for row in rows for slot in self._row_slots(row)]
        return KvPlan(torch.tensor(slots, dtype=torch.int64), rows, self.ledger.page_size)

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        """The step's tokens are stored."""
        self.ledger.store(step.rows)

    def remove(self, rid: str) -> None:
        """Free all pages of a request."""
        self.ledger.close(rid)

    def check_integrity(self) -> None:
        """Every page free or owned once, every promise covered."""
        self.ledger.check_integrity()

    def _row(self, segment: Segment) -> KvRow:
        stream = self.ledger.stream(segment.request_id, segment.label)
        used = self.ledger.pages_for(stream.stored + segment.span)
        if used > len(stream.pages):
            raise EngineError(
                f"request {segment.request_id!r} needs {used} pages, owns {len(stream.pages)}: "
                "admit before plan"
            )
        return KvRow(stream.stored, segment.span, tuple(stream.pages[:used]))

    def _row_slots(self, row: KvRow) -> list[int]:
        size = self.ledger.page_size
        return [row.pages[at // size] * size + at % size for at in range(row.start, row.start + row.span)]
