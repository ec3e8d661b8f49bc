"""The face that every resource shows to the runner."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, Protocol, TypeVar

from treadle.engine.resources.step import READY, AdmitOutcome, ResourceStep, StepContext

P = TypeVar("P")


class Resource(Protocol):
    """Something that keeps state for requests and is revisited in every step.

    The runner calls the verbs in the order of the protocol. It knows requests and keys, and never
    what kind of resource it drives.
    """

    @property
    def depends_on(self) -> Collection[str]:
        """Keys of the resources whose plan this one reads."""

    def ingest(self, rid: str, overrides: object | None) -> None:
        """Open state for a request that is not open here. When it raises, `remove` follows."""

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        """Reserve what the step needs, or refuse and reserve nothing. Again for the same step: no-op."""

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        """Give back what `admit` reserved. Safe for rows that reserved nothing, committed or are gone."""

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        """What the forward pass needs to know. Changes nothing that another plan or a rollback can see."""

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        """The forward pass was issued: what was reserved is now used."""

    def remove(self, rid: str) -> None:
        """Forget a request and free all it holds. Safe for one that is unknown or half open."""

    def check_integrity(self) -> None:
        """Prove the sums of this resource, or raise EngineError saying which one is wrong."""


class ReservesNothing:
    """For a resource that only plans: every verb but `plan` has nothing to do.

    A subclass writes `plan`, and whatever else it needs.
    """

    @property
    def depends_on(self) -> Collection[str]:
        """No other plan is read."""
        return ()

    def ingest(self, rid: str, overrides: object | None) -> None:
        """Keeps nothing per request."""

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        """Always ready."""
        return READY

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        """Reserved nothing."""

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        """Used nothing up."""

    def remove(self, rid: str) -> None:
        """Keeps nothing per request."""

    def check_integrity(self) -> None:
        """Has no sums."""


class PlansOnly(ReservesNothing, Generic[P]):
    """A resource that only plans, also ahead of time. A subclass writes `plan_step`, into fresh memory."""

    _ahead: P | None = None

    def plan_step(self, step: ResourceStep, ctx: StepContext) -> P:
        """What `plan` returns."""
        raise NotImplementedError

    def plan(self, step: ResourceStep, ctx: StepContext) -> P:
        """See `Resource`; kept until it is promoted when it is made ahead."""
        plan = self.plan_step(step, ctx)
        if ctx.is_preplan:
            self._ahead = plan
        return plan

    def promote(self, step: ResourceStep, ctx: StepContext) -> P:
        """See `PlansAhead`."""
        plan, self._ahead = self._ahead, None
        return self.plan_step(step, ctx) if plan is None else plan

    def clear_preplan(self) -> None:
        """See `PlansAhead`."""
        self._ahead = None
