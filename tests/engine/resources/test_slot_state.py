"""Slots of state: blank for a new owner, kept while the request lives, given back in order."""

import pytest
import torch

from treadle.engine.resources.resource import ReservesNothing
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.slot_state import SlotPlan, SlotState
from treadle.engine.resources.step import (
    NO_ROOM,
    READY,
    AdmitOutcome,
    CachedPrefix,
    Refusal,
    ResourceStep,
    Segment,
    StepContext,
    SubmoduleStep,
)
from treadle.errors import EngineError


class Gate(ReservesNothing):
    """Comes after the slots, and refuses when told to."""

    def __init__(self) -> None:
        self.shut = False

    @property
    def depends_on(self) -> tuple[str, ...]:
        return ("state",)

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        return NO_ROOM if self.shut else READY

    def plan(self, step: ResourceStep, ctx: StepContext) -> None: ...


class Bench:
    """A pool of slots, a gate behind it, and requests that are open."""

    def __init__(self, slots: int = 2, rids: str = "abc") -> None:
        self.state, self.gate = SlotState((3,), slots), Gate()
        self.runner = StepRunner({"state": self.state, "gate": self.gate})
        for rid in rids:
            self.runner.ingest_request(rid)

    @property
    def free(self) -> tuple[int, ...]:
        return self.state.holdings().free

    def step(self, *rids: str, span: int = 1) -> SubmoduleStep:
        return SubmoduleStep(
            {"state": ResourceStep(), "gate": ResourceStep()}, tuple(Segment(rid, span) for rid in rids)
        )

    def run(self, *rids: str, value: float = 1.0) -> list[int]:
        """A step that adds a value to the state of each row; returns the slots."""
        step = self.step(*rids)
        assert self.runner.admit(step).ok
        self.runner.plan(step)
        slots = step.ctx.result("state", SlotPlan).slots
        self.state.state[slots] += value
        self.runner.commit(step)
        return slots.tolist()

    def read(self, slot: int) -> list[float]:
        return self.state.state[slot].tolist()


def test_a_refusal_by_a_later_resource_gives_both_slots_back() -> None:
    """The key that failed is the later one, and the pool is as it was."""
    bench = Bench()
    before, bench.gate.shut = bench.free, True
    outcome = bench.runner.admit(bench.step("a", "b"))
    assert (outcome.ok, outcome.key) == (False, "gate")
    assert bench.free == before


def test_a_committed_row_keeps_its_state_when_a_newcomer_is_refused() -> None:
    """A refused step undoes itself, and not the steps before it."""
    bench = Bench()
    (slot,) = bench.run("a", value=5.0)
    before, bench.gate.shut = bench.free, True
    assert not bench.runner.admit(bench.step("a", "b")).ok
    assert bench.free == before
    bench.gate.shut = False
    assert bench.run("a") == [slot]
    assert bench.read(slot) == [6.0] * 3


def test_slots_of_a_stage_are_freed_when_the_full_admit_refuses() -> None:
    """What was reserved ahead belongs to the step that did not happen."""
    bench = Bench()
    before = bench.free
    step = bench.step("a", "b")
    assert bench.runner.pre_admit(step).ok
    assert bench.free == ()
    bench.gate.shut = True
    assert not bench.runner.admit(step).ok
    assert bench.free == before


def test_a_row_removed_before_the_unwind_is_not_freed_twice() -> None:
    """A client may hang up between admit and rollback."""
    bench = Bench()
    step = bench.step("a", "b")
    bench.runner.admit(step)
    bench.runner.remove_request("a")
    bench.runner.rollback_admit(step)
    bench.runner.check_integrity()
    assert sorted(bench.free) == [0, 1]


def test_after_a_cleared_stage_a_refused_admit_of_the_same_rows_leaves_all_free() -> None:
    """Nothing of the stage is remembered."""
    bench = Bench()
    before, step = bench.free, bench.step("a", "b")
    bench.runner.pre_admit(step)
    bench.runner.clear_preplan()
    assert bench.free == before
    bench.gate.shut = True
    assert not bench.runner.admit(step).ok
    assert bench.free == before


def test_a_live_step_keeps_its_slots_when_a_stage_is_cleared_and_a_new_owner_sees_zeros() -> None:
    """The stage was a guess about the next step, and this one computes."""
    bench = Bench(slots=3)
    live = bench.step("a", "b")
    assert bench.runner.admit(live).ok
    assert bench.runner.pre_admit(bench.step("c")).ok
    bench.runner.plan(live)
    bench.runner.clear_preplan()
    slots = live.ctx.result("state", SlotPlan).slots
    assert sorted(bench.free) == sorted({0, 1, 2} - set(slots.tolist()))
    bench.state.state[slots] = 7.0
    bench.runner.commit(live)
    for rid in "ab":
        bench.runner.remove_request(rid)
    for rid in "xyz":
        bench.runner.ingest_request(rid)
    new = bench.run("x", "y", "z", value=0.0)
    assert [bench.read(slot) for slot in new] == [[0.0] * 3] * 3


def test_a_staged_step_that_became_live_is_not_cleared_away() -> None:
    """It was promoted: what the stage reserved is its own."""
    bench = Bench()
    step = bench.step("a")
    bench.runner.pre_admit(step)
    bench.runner.pre_plan(step)
    assert bench.runner.admit(step).ok
    bench.runner.plan(step)
    bench.runner.clear_preplan()
    assert len(bench.free) == 1
    bench.runner.commit(step)


def test_too_few_slots_refuse_the_whole_step() -> None:
    """Half a batch would run twice."""
    bench = Bench()
    before = bench.free
    outcome = bench.runner.admit(bench.step("a", "b", "c"))
    assert (outcome.reason, outcome.key) == (Refusal.ALLOCATION_FAILED, "state")
    assert bench.free == before


def test_padding_rows_take_no_slot_and_share_one_that_nobody_has() -> None:
    """They fill up a captured shape, and what they write is not read."""
    bench = Bench(rids="ab")
    for rid in ("pad 1", "pad 2"):
        bench.runner.ingest_capture_row(rid)
    step = SubmoduleStep(
        {"state": ResourceStep()}, (Segment("a", 1), Segment("pad 1", 0), Segment("pad 2", 0))
    )
    assert bench.runner.admit(step).ok
    bench.runner.plan(step)
    assert step.ctx.result("state", SlotPlan).slots.tolist()[1:] == [2, 2]
    assert len(bench.free) == 1


def test_streams_of_one_request_have_a_state_each() -> None:
    """A fork goes its own way."""
    bench = Bench()
    step = SubmoduleStep({"state": ResourceStep()}, (Segment("a", 1), Segment("a", 1, "fork")))
    assert bench.runner.admit(step).ok
    bench.runner.plan(step)
    bench.runner.commit(step)
    assert len(set(step.ctx.result("state", SlotPlan).slots.tolist())) == 2
    bench.runner.remove_request("a")
    assert len(bench.free) == 2


def test_state_comes_back_as_it_went_away() -> None:
    """A request that made room for another goes on where it was."""
    bench = Bench(slots=1)
    bench.run("a", value=3.0)
    assert not bench.state.can_offload("b")
    assert bench.state.offload("a") == 1
    assert bench.runner.admit(bench.step("a")).reason is Refusal.OFFLOADING
    bench.run("b", value=9.0)
    assert not bench.state.can_reload("a")
    with pytest.raises(EngineError, match="ask can_reload first"):
        bench.state.reload("a")
    bench.runner.remove_request("b")
    bench.state.reload("a")
    assert not bench.state.is_offloaded("a")
    (slot,) = bench.run("a", value=0.5)
    assert bench.read(slot) == [3.5] * 3
    bench.state.offload("a")
    bench.runner.remove_request("a")
    bench.runner.check_integrity()
    assert len(bench.free) == 1


def test_a_state_lets_nothing_be_skipped() -> None:
    """What it is depends on every token, so a prefix that pages could serve must run."""
    bench = Bench()
    assert bench.state.resolve_cached_prefix("a", "node", "walk", [1, 2]) == CachedPrefix(0)
    bench.state.apply_cached_prefix("a", "node", "walk", [1, 2], CachedPrefix(0))
    with pytest.raises(EngineError, match="would skip 1 tokens"):
        bench.state.apply_cached_prefix("a", "node", "walk", [1, 2], CachedPrefix(1))


def test_wrong_openings_and_unknown_requests_are_named() -> None:
    """Each would mix two requests up, or lose what a caller asked for."""
    bench = Bench()
    with pytest.raises(EngineError, match="'a' with None, open before"):
        bench.state.ingest("a", None)
    with pytest.raises(EngineError, match="'z' with 5, not open"):
        bench.state.ingest("z", 5)
    with pytest.raises(EngineError, match="'z' has no state here"):
        bench.runner.admit(bench.step("z"))
    with pytest.raises(EngineError, match="admit before plan"):
        bench.state.plan(ResourceStep((Segment("a", 1),)), StepContext())


def test_the_state_is_of_the_asked_kind() -> None:
    """Half the memory for half the precision."""
    assert SlotState((2, 2), 3, dtype=torch.bfloat16).state.dtype is torch.bfloat16
