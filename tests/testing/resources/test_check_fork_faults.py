"""The check finds faults in what forks streams."""

import pytest

from tests.testing.resources.first_found import FIRST_FOUND
from tests.testing.resources.tape import Stream, Tape, TapeStep, forking
from treadle.engine.resources import AdmitOutcome, ResourceStep, StepContext
from treadle.engine.resources.pages import Fork
from treadle.errors import EngineError
from treadle.testing.resources import check_resource


class ForksWhatIsNotStored(Tape):
    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        assert isinstance(step, TapeStep)
        return super().admit(TapeStep(step.rows, (*step.before, *step.after)), ctx)


class ForksTooLate(Tape):
    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        assert isinstance(step, TapeStep)
        super().commit(TapeStep(step.rows, step.before), ctx)


class KeepsTheForksOfWhatDidNotRun(Tape):
    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        super().rollback(TapeStep(step.rows), ctx)


class UndoesTheForksOfWhatRan(Tape):
    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        assert isinstance(step, TapeStep)
        super().commit(step, ctx)
        for fork in step.before:
            self.streams[fork.target].born = True


class WritesOverItsSource(Tape):
    def fork(self, fork: Fork) -> None:
        units = self.streams[fork.request_id, fork.label].units
        self.own(units)
        self.streams[fork.target] = Stream(units)


class CountsNoSecondOwner(Tape):
    def fork(self, fork: Fork) -> None:
        self.streams[fork.target] = Stream(list(self.streams[fork.request_id, fork.label].units))


class ForksIntoTheSameRequest(Tape):
    def fork(self, fork: Fork) -> None:
        super().fork(fork._replace(to_request=None))


class ForgetsLabels(Tape):
    def remove(self, rid: str) -> None:
        if (rid, "main") in self.streams:
            self.drop(self.streams.pop((rid, "main")).units)


FAULTS = (
    ForksWhatIsNotStored,
    ForksTooLate,
    KeepsTheForksOfWhatDidNotRun,
    UndoesTheForksOfWhatRan,
    WritesOverItsSource,
    CountsNoSecondOwner,
    ForksIntoTheSameRequest,
    ForgetsLabels,
)


@pytest.mark.parametrize("faulty", FAULTS)
def test_a_fault_is_found(faulty: type[Tape]) -> None:
    """A fork that is wrong shows only when both have gone on."""
    with pytest.raises((EngineError, KeyError)):
        check_resource(
            faulty,
            shown=lambda plan: plan,
            limit=6,
            forks=forking,
            compute=Tape.compute,
            seen=Tape.seen,
            how=FIRST_FOUND,
        )


def test_what_has_no_fault_passes() -> None:
    """Or else what the check finds says nothing."""
    check_resource(
        Tape, shown=lambda plan: plan, limit=6, forks=forking, compute=Tape.compute, seen=Tape.seen
    )
