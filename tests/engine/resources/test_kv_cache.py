"""The cache as a resource, by the runner's verbs and by what lands in its pages."""

import subprocess
import sys

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import KvPlan, KvRow
from treadle.engine.resources.kv_step import KvClaim, KvStep
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import (
    AdmitOutcome,
    Refusal,
    ResourceStep,
    Segment,
    StepContext,
    SubmoduleStep,
)
from treadle.errors import ArgumentError, EngineError

SHAPE = KvShape(layers=2, heads=3, width=4)


class Gate:
    """A resource that comes after the cache and refuses when told to."""

    depends_on = ("kv",)

    def __init__(self) -> None:
        self.shut = False

    def ingest(self, rid: str, overrides: object | None) -> None: ...
    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        return AdmitOutcome(not self.shut, not self.shut, Refusal.ALLOCATION_FAILED if self.shut else None)

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None: ...
    def plan(self, step: ResourceStep, ctx: StepContext) -> object: ...
    def commit(self, step: ResourceStep, ctx: StepContext) -> None: ...
    def remove(self, rid: str) -> None: ...
    def check_integrity(self) -> None: ...


def built(pages: int = 6, page_size: int = 4) -> tuple[PagedKvCache, Gate, StepRunner]:
    cache, gate = PagedKvCache(SHAPE, pages, page_size), Gate()
    return cache, gate, StepRunner({"kv": cache, "gate": gate})


def step_of(*rows: tuple[str, int]) -> SubmoduleStep:
    return SubmoduleStep({"kv": ResourceStep(), "gate": ResourceStep()}, tuple(Segment(*row) for row in rows))


def run(runner: StepRunner, *rows: tuple[str, int]) -> KvPlan:
    step = step_of(*rows)
    assert runner.admit(step).ok
    runner.plan(step)
    runner.commit(step)
    return step.ctx.result("kv", KvPlan)


def test_a_refusal_by_a_later_resource_gives_the_pages_back_in_order() -> None:
    """The step did not happen: the next one must find the pool as it was, page by page."""
    cache, gate, runner = built()
    for rid in "ab":
        runner.ingest_request(rid)
    before = cache.ledger.free
    gate.shut = True
    outcome = runner.admit(step_of(("a", 5), ("b", 3)))
    assert (outcome.ok, outcome.key) == (False, "gate")
    assert cache.ledger.free == before


def test_a_row_that_committed_keeps_its_page_when_a_newcomer_is_refused() -> None:
    """A refused step undoes itself, and not the steps before it."""
    cache, gate, runner = built()
    for rid in "ab":
        runner.ingest_request(rid)
    old = run(runner, ("a", 3)).rows[0].pages
    before = cache.ledger.free
    gate.shut = True
    assert not runner.admit(step_of(("a", 4), ("b", 3))).ok
    assert cache.ledger.free == before
    gate.shut = False
    assert run(runner, ("a", 1)).rows[0] == KvRow(start=3, span=1, pages=old)


def test_a_row_removed_before_the_unwind_is_not_freed_twice() -> None:
    """A client may hang up between admit and rollback."""
    cache, _, runner = built()
    for rid in "ab":
        runner.ingest_request(rid)
    step = step_of(("a", 5), ("b", 5))
    assert runner.admit(step).ok
    runner.remove_request("a")
    runner.rollback_admit(step)
    runner.remove_request("b")
    cache.check_integrity()
    assert sorted(cache.ledger.free) == list(range(6))


def test_no_room_is_a_refusal_with_its_reason_and_takes_nothing() -> None:
    """A full pool is ordinary: the step is tried again when something was given back."""
    cache, _, runner = built(pages=2)
    runner.ingest_request("a")
    runner.ingest_request("b")
    before = cache.ledger.free
    outcome = runner.admit(step_of(("a", 4), ("b", 5)))
    assert (outcome.ok, outcome.reason, outcome.key) == (False, Refusal.ALLOCATION_FAILED, "kv")
    assert cache.ledger.free == before


def test_a_refused_step_forked_nothing() -> None:
    """The new stream would be there half: with pages, and without a step that settles it."""
    cache, _, runner = built(pages=2)
    runner.ingest_request("a")
    run(runner, ("a", 3))
    step = KvStep((Segment("a", 9, "fork"),), before=(Fork("a", "fork"),))
    assert cache.admit(step, StepContext()).reason is Refusal.ALLOCATION_FAILED
    assert cache.ledger.stream("a", "fork").pages.tolist() == []
    cache.check_integrity()


def test_forks_after_the_step_have_its_tokens() -> None:
    """Those before it do not: each begins with what was stored when it was made."""
    cache, _, runner = built()
    runner.ingest_request("a")
    run(runner, ("a", 3))
    forks = KvStep(before=(Fork("a", "before"),), after=(Fork("a", "after"),))
    step = SubmoduleStep({"kv": forks}, (Segment("a", 2),))
    assert runner.admit(step).ok
    runner.commit(step)
    assert [cache.ledger.stream("a", label).stored for label in ("before", "main", "after")] == [3, 5, 5]
    # The step wrote behind the fork, so it wrote into a copy.
    assert cache.ledger.stream("a", "before").pages[0] != cache.ledger.stream("a").pages[0]
    assert cache.ledger.stream("a", "after").pages == cache.ledger.stream("a").pages
    runner.check_integrity()


def test_a_fork_that_the_commit_could_not_make_is_refused_at_once() -> None:
    """A step that was admitted must be able to commit: afterwards it would be there half."""
    cache, _, runner = built()
    runner.ingest_request("a")
    run(runner, ("a", 3))
    forking = SubmoduleStep({"kv": KvStep(before=(Fork("a", "x"),))}, (Segment("a", 1, "x"),))
    assert runner.admit(forking).ok
    runner.commit(forking)
    before = cache.holdings()
    with pytest.raises(EngineError, match=r"'x'.*has tokens already: fork into a new label"):
        runner.admit(SubmoduleStep({"kv": KvStep(after=(Fork("a", "x"),))}, (Segment("a", 5),)))
    assert cache.holdings() == before
    runner.check_integrity()


def test_slots_follow_the_pages() -> None:
    """A token's slot is its page's first slot plus its place in the page."""
    _, _, runner = built()
    runner.ingest_request("a")
    first = run(runner, ("a", 3))
    second = run(runner, ("a", 3))
    start, after = second.rows[0].pages
    assert first.slots.tolist() == [start * 4, start * 4 + 1, start * 4 + 2]
    assert second.slots.tolist() == [start * 4 + 3, after * 4, after * 4 + 1]
    (row,) = second.rows
    assert (row.start, row.span) == (3, 3)


def test_what_is_written_is_read_from_the_planned_page() -> None:
    """Keys and values of a layer land in that layer, in their own half, and nowhere else."""
    cache, _, runner = built()
    runner.ingest_request("a")
    plan = run(runner, ("a", 3))
    keys, values = torch.rand(3, 3, 4), torch.rand(3, 3, 4)
    cache.write(1, keys, values, plan)
    page = plan.rows[0].pages[0]
    read_keys, read_values = cache.layer(1)
    assert torch.equal(read_keys[:, page, :3].transpose(0, 1), keys)
    assert torch.equal(read_values[:, page, :3].transpose(0, 1), values)
    assert not any(half[:, page].any() for half in cache.layer(0))


def test_a_page_comes_blank_to_its_owner() -> None:
    """Its end is read before it is written, at weight 0, and a NaN of the last owner times 0 is NaN."""
    cache, _, runner = built(pages=1)
    cache.layer(1)[0].fill_(float("nan"))
    runner.ingest_request("a")
    run(runner, ("a", 1))
    assert not cache.layer(1)[0][:, 0].any()


def test_planning_without_admission_is_an_error() -> None:
    """The tokens would be written into pages of somebody else."""
    _, _, runner = built()
    runner.ingest_request("a")
    with pytest.raises(EngineError, match="admit before plan"):
        runner.plan(step_of(("a", 1)))


def test_a_claim_that_cannot_be_promised_leaves_the_request_open_nowhere() -> None:
    """All or nothing, so that the request may simply be tried again later."""
    cache, _, runner = built(pages=2)
    with pytest.raises(EngineError, match="can be promised"):
        runner.ingest_request("a", {"kv": KvClaim(9)})
    runner.ingest_request("a", {"kv": KvClaim(8)})
    assert not cache.can_promise(1)


def test_a_claim_of_fewer_than_no_tokens_is_refused() -> None:
    """It would promise the room of others away."""
    with pytest.raises(ArgumentError, match="0 or more tokens, got -1"):
        KvClaim(-1)


def test_an_override_of_another_kind_is_refused() -> None:
    """An untyped override would be read as no claim, and the promise silently lost."""
    _, _, runner = built()
    with pytest.raises(EngineError, match="KvClaim, got int"):
        runner.ingest_request("a", {"kv": 8})


def test_padding_rows_take_no_page_and_leave_the_whole_pool_to_one_request() -> None:
    """They fill up a captured shape, before any request came."""
    cache, _, runner = built()
    for rid in ("pad 1", "pad 2"):
        runner.ingest_capture_row(rid)
    plan = run(runner, ("pad 1", 0), ("pad 2", 0))
    assert (plan.slots.tolist(), plan.table.tolist()) == ([], [[], []])
    runner.remove_request("pad 1")
    runner.ingest_request("a", {"kv": KvClaim(24)})
    assert len(run(runner, ("a", 24), ("pad 2", 0)).rows[0].pages) == 6
    assert not cache.ledger.free


def test_the_cache_loads_no_sampler_and_no_engine() -> None:
    """A process that only moves pages must not pay for, or depend on, what computes."""
    code = (
        "import sys, treadle.engine.resources.kv_cache\n"
        "loaded = {name for name in sys.modules if name.startswith('treadle.engine.resources.')}\n"
        "others = ('attention', 'positions', 'sampler', 'sampling')\n"
        "assert not loaded & {f'treadle.engine.resources.{each}' for each in others}, loaded\n"
        "assert not {'treadle.engine.loop', 'treadle.engine.scheduler'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


RIDS = st.sampled_from("abcd")


class CacheMachine(RuleBasedStateMachine):
    """Random opens, refusals, passes, roll-backs and removals: pages add up, slots are never shared."""

    @initialize(pages=st.integers(1, 10), page_size=st.integers(1, 4))
    def build(self, pages: int, page_size: int) -> None:
        self.cache, self.gate, self.runner = built(pages, page_size)
        self.claims: dict[str, int] = {}
        self.slots: dict[str, list[int]] = {}

    @rule(rid=RIDS, claim=st.integers(0, 20))
    def ingest(self, rid: str, claim: int) -> None:
        if rid not in self.claims and self.cache.can_promise(claim):
            self.runner.ingest_request(rid, {"kv": KvClaim(claim)})
            self.claims[rid], self.slots[rid] = claim, []

    @rule(rid=RIDS)
    def remove(self, rid: str) -> None:
        self.runner.remove_request(rid)
        self.claims.pop(rid, None)
        self.slots.pop(rid, None)

    @rule(data=st.data(), end=st.sampled_from(["commit", "roll back", "refuse", "lose a row"]))
    def step(self, data: st.DataObject, end: str) -> None:
        if not self.claims:
            return
        rids = data.draw(st.lists(st.sampled_from(sorted(self.claims)), min_size=1, unique=True))
        step = step_of(*((rid, data.draw(st.integers(0, 6))) for rid in rids))
        before = self.cache.ledger.free
        self.gate.shut = end == "refuse"
        outcome = self.runner.admit(step)
        if not outcome.ok:
            assert self.cache.ledger.free == before
            within = all(len(self.slots[rid]) + span <= self.claims[rid] for rid, span, _ in step.segments)
            assert self.gate.shut or not within, "a promise was broken"
        elif end == "commit":
            self.commit(step)
        else:
            if end == "lose a row":
                self.remove(rids[0])
            self.runner.rollback_admit(step)
            assert end == "lose a row" or self.cache.ledger.free == before

    def commit(self, step: SubmoduleStep) -> None:
        self.runner.plan(step)
        slots = iter(step.ctx.result("kv", KvPlan).slots.tolist())
        self.runner.commit(step)
        free = self.cache.ledger.free
        self.runner.rollback_admit(step)
        assert self.cache.ledger.free == free
        for rid, span, _ in step.segments:
            self.slots[rid].extend(next(slots) for _ in range(span))

    @invariant()
    def pages_add_up(self) -> None:
        if hasattr(self, "cache"):
            self.runner.check_integrity()
            used = [slot for slots in self.slots.values() for slot in slots]
            assert len(used) == len(set(used))
            assert self.claims or len(self.cache.ledger.free) == self.cache.ledger.total


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
