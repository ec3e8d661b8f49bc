"""The check finds faults in what is told to other nodes, brought in from them, padded and captured."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy

import pytest

from tests.testing.resources.first_found import FIRST_FOUND
from tests.testing.resources.pool import PENDING, SIZE, Pool, Row, Told
from treadle.engine.resources import AdmitOutcome, ResourceStep, StepContext
from treadle.engine.resources.step import NO_ROOM, PublishedInfo
from treadle.errors import EngineError
from treadle.testing.resources import check_resource


class TakesASlotToPublish(Pool):
    def publish(self, rid: str, node_name: str | None, graph_walk: str | None) -> Told | None:
        if rid in self.rows and self.free:
            self.rows[rid].slots.append(self.free.pop())
        return super().publish(rid, node_name, graph_walk)


class KnowsTheStranger(Pool):
    def publish(self, rid: str, node_name: str | None, graph_walk: str | None) -> Told | None:
        return super().publish(rid, node_name, graph_walk) or Told(0, ())


class LeavesOneOutOfABatch(Pool):
    def publish_snapshot_batch(
        self, request_ids: Sequence[str], node_name: str | None, walk_of: Callable[[str], str | None]
    ) -> Mapping[str, object]:
        return super().publish_snapshot_batch(request_ids[1:], node_name, walk_of)


class MixesUpABatch(Pool):
    def publish_snapshot_batch(
        self, request_ids: Sequence[str], node_name: str | None, walk_of: Callable[[str], str | None]
    ) -> Mapping[str, object]:
        taken = super().publish_snapshot_batch(request_ids, node_name, walk_of)
        return dict(zip(taken, reversed(list(taken.values())), strict=True))


class EndsWhatItTellsAfterTheStop(Pool):
    def publish_after_stop(self, rid: str, node_name: str | None, graph_walk: str | None) -> Told | None:
        told = super().publish(rid, node_name, graph_walk)
        self.remove(rid)
        return told


class TakesForEveryQuestion(Pool):
    def arrive(self, row: Row, told: Told) -> None:
        super().arrive(row, told)
        row.arrived = None


class NeverArrives(Pool):
    def admit_retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: PublishedInfo | None
    ) -> AdmitOutcome:
        super().admit_retrieve(rid, node_name, graph_walk, published)
        return PENDING


class ArrivesInAnotherOrder(Pool):
    def arrive(self, row: Row, told: Told) -> None:
        super().arrive(row, told)
        self.write(row, 0, told.content[::-1])


class KeepsAPartOfWhatItRefuses(Pool):
    def admit_retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: PublishedInfo | None
    ) -> AdmitOutcome:
        outcome = super().admit_retrieve(rid, node_name, graph_walk, published)
        if not outcome.ok:
            self.rows[rid].slots += self.free
            self.free.clear()
        return outcome


class LosesWhatFlies(Pool):
    def remove(self, rid: str) -> None:
        if rid in self.rows and self.rows[rid].flying:
            del self.rows[rid]
        super().remove(rid)


class RefusesWhatItHasRoomFor(Pool):
    def admit_retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: PublishedInfo | None
    ) -> AdmitOutcome:
        if isinstance(published, Told) and len(published.slots) > 1:
            return NO_ROOM
        return super().admit_retrieve(rid, node_name, graph_walk, published)


class PadsAStageByThePage(Pool):
    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        outcome = super().admit(step, ctx)
        padding = [self.rows[rid] for rid in ctx.padding_ids]
        if ctx.is_preplan and outcome.ok and padding and self.free:
            self.take(padding[0], 1)
        return outcome


class LeavesPaddingOutOfAPromotedPlan(Pool):
    def promote(self, step: ResourceStep, ctx: StepContext) -> object:
        planned = super().promote(step, ctx)
        assert isinstance(planned, dict)
        return {rid: slots for rid, slots in planned.items() if rid not in ctx.padding_ids}


class GrowsItsBuffersOutOfThePool(Pool):
    def build_accelerator_graph_buffers(self, slots: int, max_bs: int, max_seq_len: int) -> None:
        self.free[:1] = []


class CannotPlanIntoBuffers(Pool):
    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        planned = super().plan(step, ctx)
        return planned if ctx.slot is None else (planned, self.moves())

    def moves(self) -> int:
        self.planned = getattr(self, "planned", 0) + 1
        return self.planned


class StagesIntoWhatIsRead(Pool):
    """The buffer is one, whichever slot is asked for."""

    buffer: dict[str, tuple[int, ...]]

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        planned = super().plan(step, ctx)
        if ctx.slot is None:
            return planned
        assert isinstance(planned, dict)
        self.buffer = getattr(self, "buffer", {})
        self.buffer.clear()
        self.buffer.update(planned)
        return self.buffer


class WritesOverItsNeighbour(Pool):
    def write(self, row: Row, start: int, content: Sequence[str]) -> None:
        super().write(row, start, content)
        if start + len(content) > 2 * SIZE:
            self.content[0][0] = "mine"


class ReloadsInAnotherOrder(Pool):
    def reload(self, rid: str) -> None:
        super().reload(rid)
        self.rows[rid].slots.reverse()


FAULTS = (
    TakesASlotToPublish,
    KnowsTheStranger,
    LeavesOneOutOfABatch,
    MixesUpABatch,
    EndsWhatItTellsAfterTheStop,
    TakesForEveryQuestion,
    NeverArrives,
    ArrivesInAnotherOrder,
    KeepsAPartOfWhatItRefuses,
    LosesWhatFlies,
    RefusesWhatItHasRoomFor,
    PadsAStageByThePage,
    LeavesPaddingOutOfAPromotedPlan,
    GrowsItsBuffersOutOfThePool,
    CannotPlanIntoBuffers,
    StagesIntoWhatIsRead,
    WritesOverItsNeighbour,
    ReloadsInAnotherOrder,
)


@pytest.mark.parametrize("faulty", FAULTS)
def test_a_fault_is_found(faulty: type[Pool]) -> None:
    """What is wrong here is wrong on another node, or in a replay, where nobody can tell why."""
    with pytest.raises((EngineError, KeyError)):
        check_resource(
            faulty,
            shown=deepcopy,
            captured=True,
            compute=Pool.compute,
            seen=Pool.seen,
            how=FIRST_FOUND,
        )


def test_what_has_no_fault_passes() -> None:
    """Or else what the check finds says nothing."""
    check_resource(Pool, shown=deepcopy, captured=True, compute=Pool.compute, seen=Pool.seen)
