"""State of a fixed size for each stream, as recurrent layers and convolutions keep it: a pool of slots.

A stream gets its slot when its first step is admitted, blank, and keeps it until its request is removed.
Padding rows share one slot that nobody reads.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.resources.page_pool import PagePool
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.stage import Stage
from treadle.engine.resources.step import (
    NO_ROOM,
    READY,
    AdmitOutcome,
    CachedPrefix,
    Refusal,
    ResourceStep,
    StepContext,
)
from treadle.errors import EngineError

_AWAY = AdmitOutcome(ok=False, ready=False, reason=Refusal.OFFLOADING)


@dataclass(frozen=True)
class SlotPlan:
    """int64 (rows,): where the state of each row stands in `SlotState.state`."""

    slots: Tensor


@dataclass(slots=True, eq=False)
class _State:
    """The slots of a request by label, those that no step committed, and what is kept while it is away."""

    slots: dict[str, int]
    fresh: set[str]
    away: Tensor | None = None


class SlotState:
    """A resource: `slots` states of one shape, allocated once.

    Args:
        shape: of a state.
        slots: how many streams can have one at once.
        dtype: of the numbers.

    Attributes:
        state: (slots + 1, *shape), which the forward pass reads and writes; the last is for padding rows.

    Raises:
        ArgumentError: no slot.
    """

    depends_on: Collection[str] = ()

    def __init__(self, shape: Sequence[int], slots: int, *, dtype: torch.dtype = torch.float32) -> None:
        self._pool = PagePool(slots)
        self.state = torch.zeros(slots + 1, *shape, dtype=dtype)
        self._open: dict[str, _State] = {}
        self._stage: Stage[SlotPlan] = Stage()

    def ingest(self, rid: str, overrides: object | None) -> None:
        """Open a request, which has no state yet.

        Raises:
            EngineError: it is open already, or there is an override: there is nothing to choose.
        """
        if rid in self._open or overrides is not None:
            raise EngineError(
                f"slot state opens a request once and without overrides; got {rid!r} with {overrides!r}, "
                f"{'open' if rid in self._open else 'not open'} before"
            )
        self._open[rid] = _State({}, set())

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        """A blank slot for each stream that has none, or for none of them.

        Raises:
            EngineError: a request is not open.
        """
        if any(self._state(segment.request_id).away is not None for segment in step.rows):
            return _AWAY
        new = list(self._without_slot(step))
        if len(new) > self._pool.available:
            return NO_ROOM
        for (rid, label), at in zip(new, self._pool.take(len(new)), strict=True):
            self._open[rid].slots[label] = at
            self._open[rid].fresh.add(label)
            self.state[at] = 0
        self._stage.reserved(step, ahead=ctx.is_preplan)
        return READY

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        """Give back the slots of streams that no step committed; the free list stands as before."""
        self._give_back(step)

    def plan(self, step: ResourceStep, ctx: StepContext) -> SlotPlan:
        """The slot of each row, of a row of no token the one for padding.

        Raises:
            EngineError: a row was not admitted.
        """
        plan = SlotPlan(torch.tensor([self._slot(*row) for row in step.rows], dtype=torch.int64))
        if ctx.is_preplan:
            self._stage.planned(plan)
        return plan

    def promote(self, step: ResourceStep, ctx: StepContext) -> SlotPlan:
        """See `PlansAhead`."""
        return self._stage.promote() or self.plan(step, ctx)

    def clear_preplan(self) -> None:
        """See `PlansAhead`."""
        if step := self._stage.clear():
            self._give_back(step)

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        """The rows' states are theirs from now on."""
        for rid, _, label in step.rows:
            self._state(rid).fresh.discard(label)

    def remove(self, rid: str) -> None:
        """Free the slots of a request; the next owner finds zeros."""
        state = self._open.pop(rid, None)
        if state is not None and state.away is None:
            self._pool.drop(state.slots.values())

    def resolve_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        """Nothing can be skipped: a state has seen every token, or it is another one."""
        return CachedPrefix(0) if rid in self._open else None

    def apply_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int], prefix: CachedPrefix
    ) -> None:
        """Check that nothing is skipped.

        Raises:
            EngineError: something is.
        """
        if prefix.length:
            raise EngineError(
                f"request {rid!r} would skip {prefix.length} tokens, and its state has not seen them: "
                "ask resolve_cached_prefix of every resource"
            )

    def complete_cached_walk(self, rid: str, node_name: str, graph_walk: str) -> None:
        """No walk is served whole here."""

    def can_offload(self, rid: str) -> bool:
        """See `Offloading`; there is always room."""
        state = self._open.get(rid)
        return state is not None and state.away is None and bool(state.slots) and not state.fresh

    def offload(self, rid: str) -> int:
        """See `Offloading`.

        Raises:
            EngineError: not after `can_offload`.
        """
        if not self.can_offload(rid):
            raise EngineError(f"request {rid!r} cannot be offloaded now: ask can_offload first")
        state = self._open[rid]
        state.away = self.state[list(state.slots.values())]
        self._pool.drop(state.slots.values())
        return len(state.slots)

    def is_offloaded(self, rid: str) -> bool:
        """See `Offloading`."""
        return rid in self._open and self._open[rid].away is not None

    def can_reload(self, rid: str) -> bool:
        """See `Offloading`."""
        return self.is_offloaded(rid) and len(self._open[rid].slots) <= self._pool.available

    def reload(self, rid: str) -> None:
        """See `Offloading`.

        Raises:
            EngineError: not after `can_reload`.
        """
        if not self.can_reload(rid):
            raise EngineError(f"request {rid!r} cannot be loaded back now: ask can_reload first")
        state = self._open[rid]
        if state.away is not None:
            slots = self._pool.take(len(state.slots)).tolist()
            self.state[slots] = state.away
            state.slots, state.away = dict(zip(state.slots, slots, strict=True)), None

    def holdings(self) -> Holdings:
        """See `Accounting`."""
        here = {rid: state for rid, state in self._open.items() if state.away is None}
        return Holdings(self._pool.free, {rid: tuple(state.slots.values()) for rid, state in here.items()})

    def check_integrity(self) -> None:
        """Every slot is free or has one owner."""
        self._pool.check_integrity(at for slots in self.holdings().held.values() for at in slots)

    def _state(self, rid: str) -> _State:
        if rid not in self._open:
            raise EngineError(f"request {rid!r} has no state here: ingest it before a step names it")
        return self._open[rid]

    def _without_slot(self, step: ResourceStep) -> Iterator[tuple[str, str]]:
        for rid, span, label in step.rows:
            if span and label not in self._state(rid).slots:
                yield rid, label

    def _give_back(self, step: ResourceStep) -> None:
        back = array("i")
        for rid, _, label in step.rows:
            if rid in self._open and label in self._open[rid].fresh:
                self._open[rid].fresh.discard(label)
                back.append(self._open[rid].slots.pop(label))
        self._pool.drop(back)

    def _slot(self, rid: str, span: int, label: str) -> int:
        if not span:
            return len(self.state) - 1
        if label not in self._state(rid).slots:
            raise EngineError(f"request {rid!r} has no slot for {label!r}: admit before plan")
        return self._open[rid].slots[label]
