"""The check finds what it is for: each resource here is the pool with one fault that is easily made."""

import pytest

from tests.testing.resources.first_found import FIRST_FOUND
from tests.testing.resources.pool import SIZE, Pool, Row, Told
from treadle.engine.resources import AdmitOutcome, ResourceStep, StepContext
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.step import NO_ROOM
from treadle.errors import EngineError
from treadle.testing.resources import check_resource


class LeaksWhenRemoved(Pool):
    def remove(self, rid: str) -> None:
        if (row := self.rows.pop(rid, None)) is not None:
            self.free.extend(reversed(row.slots[1:]))


class FreesTwice(Pool):
    def remove(self, rid: str) -> None:
        if (row := self.rows.get(rid)) is not None:
            self.free.extend(reversed(row.slots))
            if row.stored < 2 * SIZE:
                del self.rows[rid]


class GivesBackInAnotherOrder(Pool):
    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        self.give_back([segment.request_id for segment in reversed(step.rows)])


class RollsBackWhatCommitted(Pool):
    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        for segment in step.rows:
            self.rows[segment.request_id].stored += segment.span


class ReservesAgain(Pool):
    def missing(self, rid: str, span: int) -> int:
        return -(-span // SIZE)


class CannotRollBackWhatIsGone(Pool):
    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        for segment in reversed(step.rows):
            row = self.rows[segment.request_id]
            while row.taken:
                self.free.append(row.slots.pop())
                row.taken -= 1


class KnowsNoStranger(Pool):
    def remove(self, rid: str) -> None:
        self.free.extend(reversed(self.rows.pop(rid).slots))


class RemembersTheRemoved(Pool):
    def remove(self, rid: str) -> None:
        if rid in self.rows:
            self.rows[rid] = Row()


class ClearsWhatIsLive(Pool):
    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        staged, outcome = self.staged, super().admit(step, ctx)
        self.staged = self.staged or staged
        return outcome


class ForgetsTheStage(Pool):
    def clear_preplan(self) -> None:
        self.pending, self.staged = None, []


class PromotesAnotherPlan(Pool):
    def promote(self, step: ResourceStep, ctx: StepContext) -> object:
        super().promote(step, ctx)
        return {segment.request_id: () for segment in step.rows}


class PlansByWhatWasUndone(Pool):
    steps = 0

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        self.steps += 1
        return super().admit(step, ctx)

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        return (super().plan(step, ctx), self.steps)


class TakesWhenItPlans(Pool):
    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        if self.free and not ctx.is_preplan:
            self.take(self.rows[step.rows[0].request_id], 1)
        return super().plan(step, ctx)


class SharesTheListThatGrows(Pool):
    def publish_snapshot(self, rid: str, node_name: str | None, graph_walk: str | None) -> object | None:
        told = self.publish(rid, node_name, graph_walk)
        return None if told is None else (told.tokens, self.rows[rid].slots, told.content)


class PublishesTheMomentItIsAsked(Pool):
    def publish_from_snapshot(
        self, rid: str, snapshot: object, node_name: str | None, graph_walk: str | None
    ) -> Told | None:
        return self.publish(rid, node_name, graph_walk)


class RunsWhatIsAway(Pool):
    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        for segment in step.rows:
            if self.is_offloaded(segment.request_id):
                return NO_ROOM
        return super().admit(step, ctx)


class SaysMoreThanItFrees(Pool):
    def offload(self, rid: str) -> int:
        return super().offload(rid) + 1


class StaysAway(Pool):
    def reload(self, rid: str) -> None:
        row = self.rows[rid]
        row.slots = [self.free.pop() for _ in row.away or ()]


class PadsWithWhatRequestsNeed(Pool):
    def ingest_capture_row(self, rid: str) -> None:
        if rid not in self.rows and self.free:
            self.rows[rid] = Row(slots=[self.free.pop()])


class PadsByThePage(Pool):
    def missing(self, rid: str, span: int) -> int:
        return super().missing(rid, span or 1)


class GivesOneSlotToTwo(Pool):
    def take(self, row: Row, count: int) -> None:
        super().take(row, count)
        others = [each.slots[0] for each in self.rows.values() if each.slots and each is not row]
        if count and others:
            self.free.append(row.slots.pop())
            row.slots.append(others[0])


class KnowsThatItIsWrong(Pool):
    def check_integrity(self) -> None:
        if len(self.rows) > 1:
            raise EngineError("its own sums are wrong")


class HidesWhatItLeaks(LeaksWhenRemoved):
    def can_offload(self, rid: str) -> bool:
        return False

    def holdings(self) -> Holdings:
        return Holdings((), {})


FAULTS = (
    LeaksWhenRemoved,
    FreesTwice,
    GivesBackInAnotherOrder,
    RollsBackWhatCommitted,
    ReservesAgain,
    CannotRollBackWhatIsGone,
    KnowsNoStranger,
    RemembersTheRemoved,
    ClearsWhatIsLive,
    ForgetsTheStage,
    PromotesAnotherPlan,
    PlansByWhatWasUndone,
    TakesWhenItPlans,
    SharesTheListThatGrows,
    PublishesTheMomentItIsAsked,
    RunsWhatIsAway,
    SaysMoreThanItFrees,
    StaysAway,
    PadsWithWhatRequestsNeed,
    PadsByThePage,
    GivesOneSlotToTwo,
    KnowsThatItIsWrong,
    HidesWhatItLeaks,
)


@pytest.mark.parametrize("faulty", FAULTS)
def test_a_fault_is_found(faulty: type[Pool]) -> None:
    """A check that lets a fault pass is worse than none: it is believed."""
    with pytest.raises((EngineError, KeyError)):
        check_resource(faulty, shown=lambda plan: plan, how=FIRST_FOUND)


def test_what_has_no_fault_passes() -> None:
    """Or else what the check finds says nothing."""
    check_resource(Pool, shown=lambda plan: plan)


def test_the_events_that_show_a_fault_are_told() -> None:
    """A fault that cannot be repeated cannot be mended."""
    with pytest.raises(EngineError) as caught:
        check_resource(LeaksWhenRemoved, how=FIRST_FOUND)
    told = "\n".join(caught.value.__notes__)
    assert "state.open_some(" in told
    assert any(f"state.{event}(" in told for event in ("empty", "remove", "lose_a_row", "commit_by_half"))
