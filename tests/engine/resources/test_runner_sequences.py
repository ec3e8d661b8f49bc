"""The runner under any sequence of verbs, over resources that refuse and raise at random."""

from collections.abc import Collection

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import (
    NO_ROOM,
    READY,
    AdmitOutcome,
    ResourceStep,
    Segment,
    StepContext,
    SubmoduleStep,
)
from treadle.errors import EngineError


class Slots:
    """A resource with real state that refuses and raises at random: slots of one pool."""

    def __init__(self, chance: st.DataObject, depends_on: Collection[str]) -> None:
        self.depends_on = depends_on
        self.chance = chance
        self.open: set[str] = set()
        self.reserved: dict[str, int] = {}
        self.used: dict[str, int] = {}

    def ingest(self, rid: str, overrides: object | None) -> None:
        assert rid not in self.open
        if self.chance.draw(st.integers(0, 9)) == 0:
            raise EngineError("ingest failed")
        self.open.add(rid)

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        luck = self.chance.draw(st.integers(0, 9))
        if luck == 0:
            return NO_ROOM
        for at, segment in enumerate(step.rows):
            if luck == 1 and at == 1:
                raise EngineError("admit failed half way")
            assert segment.request_id in self.open
            self.reserved[segment.request_id] = segment.span
        return READY

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        for segment in step.rows:
            self.reserved.pop(segment.request_id, None)

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        assert all(segment.request_id in self.reserved for segment in step.rows)
        assert set(self.depends_on) <= set(ctx.plan_results)
        return self

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        for segment in step.rows:
            self.used[segment.request_id] = self.used.get(segment.request_id, 0) + self.reserved.pop(
                segment.request_id
            )

    def remove(self, rid: str) -> None:
        self.open.discard(rid)
        self.reserved.pop(rid, None)
        self.used.pop(rid, None)

    def check_integrity(self) -> None:
        assert set(self.reserved) <= self.open
        assert set(self.used) <= self.open


RIDS = st.sampled_from("abcd")


class RunnerMachine(RuleBasedStateMachine):
    """Any sequence of verbs over resources that fail at any moment leaves all of them in agreement."""

    @initialize(data=st.data(), count=st.integers(1, 4))
    def build(self, data: st.DataObject, count: int) -> None:
        keys = [f"r{at}" for at in range(count)]
        self.slots = {key: Slots(data, tuple(keys[:at][-1:])) for at, key in enumerate(keys)}
        self.runner = StepRunner(self.slots)
        self.open: set[str] = set()
        self.stored: dict[str, int] = {}

    @rule(rid=RIDS)
    def ingest(self, rid: str) -> None:
        try:
            self.runner.ingest_request(rid)
        except EngineError:
            assert rid not in self.open
            return
        if rid not in self.open:
            self.open.add(rid)
            self.stored[rid] = 0

    @rule(rid=RIDS)
    def remove(self, rid: str) -> None:
        self.runner.remove_request(rid)
        self.open.discard(rid)
        self.stored.pop(rid, None)

    @rule(data=st.data(), runs=st.booleans())
    def take_a_step(self, data: st.DataObject, runs: bool) -> None:
        if not self.open:
            return
        rids = data.draw(st.lists(st.sampled_from(sorted(self.open)), min_size=1, unique=True))
        step = SubmoduleStep(
            {key: ResourceStep() for key in self.slots},
            tuple(Segment(rid, data.draw(st.integers(1, 5))) for rid in rids),
        )
        try:
            outcome = self.runner.admit(step)
        except EngineError:
            return
        if not outcome.ok:
            assert outcome.key in self.slots
        elif runs:
            assert list(self.runner.plan(step)) == list(self.runner.order)
            self.runner.commit(step)
            self.runner.rollback_admit(step)  # a committed step has nothing to undo
            for segment in step.segments:
                self.stored[segment.request_id] += segment.span
        else:
            self.runner.rollback_admit(step)

    @invariant()
    def all_agree(self) -> None:
        for slots in getattr(self, "slots", {}).values():
            slots.check_integrity()
            assert slots.open == self.open
            assert slots.reserved == {}
            assert {rid: count for rid, count in slots.used.items() if count} == {
                rid: count for rid, count in self.stored.items() if count
            }


TestRunnerMachine = RunnerMachine.TestCase
TestRunnerMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
