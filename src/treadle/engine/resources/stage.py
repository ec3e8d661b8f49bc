"""The step that a resource reserved and planned ahead: what everything that `PlansAhead` must remember."""

from __future__ import annotations

from typing import Generic, TypeVar

from treadle.engine.resources.step import ResourceStep

P = TypeVar("P")


class Stage(Generic[P]):
    """One step at most, its plan, and whether it is the live step by now."""

    def __init__(self) -> None:
        self._step: ResourceStep | None = None
        self._plan: P | None = None
        self._live = False

    def reserved(self, step: ResourceStep, *, ahead: bool) -> None:
        """A step was admitted: ahead, or it is the one that was staged, and what it reserved is live."""
        if ahead:
            self._step, self._plan, self._live = step, None, False
        else:
            self._live = True

    def planned(self, plan: P) -> None:
        """The plan that was made ahead."""
        self._plan = plan

    def promote(self) -> P | None:
        """The staged plan, None when there is none; nothing is staged any more."""
        plan = self._plan
        self._step, self._plan = None, None
        return plan

    def clear(self) -> ResourceStep | None:
        """Drop the stage; returns the step whose reservations nobody but the stage needs."""
        step = None if self._live else self._step
        self._step, self._plan = None, None
        return step
