"""Whether an attempt still has its claim: one that lost it failed for that reason, whatever it raised."""

from __future__ import annotations

from treadle.errors import LeaseLostError
from treadle.execution.step_spec import StepSpec
from treadle.fray import stopper


class Hold:
    """The claim of one attempt at `step`, made in the job of the attempt. Safe for threads."""

    def __init__(self, step: StepSpec) -> None:
        self._step = step
        self._stop = stopper()
        self._lost = False

    def lose(self) -> None:
        """Another owner took over: the body is asked to stop."""
        self._lost = True
        self._stop()

    def explain(self, error: BaseException) -> BaseException:
        """What was wrong when `error` was raised: the claim if it is lost, for the body was asked to stop."""
        if not self._lost or isinstance(error, LeaseLostError):
            return error
        lost = LeaseLostError(f"step {self._step.id}: another owner took it over while its function ran")
        lost.__cause__ = error
        return lost
