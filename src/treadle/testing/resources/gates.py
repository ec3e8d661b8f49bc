"""Resources that stand behind others, and refuse and fail when they are told: the others must give back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from treadle.engine.resources import AdmitOutcome, ResourceStep, StepContext
from treadle.engine.resources.resource import ReservesNothing
from treadle.engine.resources.step import NO_ROOM, READY, PublishedInfo
from treadle.errors import EngineError

T = TypeVar("T")

_PENDING = AdmitOutcome(ok=True, ready=False)


class Gate(ReservesNothing):
    """Behind those that it depends on.

    Attributes:
        refuses: the next `admit` or `admit_retrieve` refuses.
        pending: how often `admit_retrieve` is not ready.
        fails: the verb that raises `error` next.
    """

    def __init__(self, depends_on: Collection[str]) -> None:
        self._depends_on = tuple(depends_on)
        self.refuses = False
        self.pending = 0
        self.fails = ""
        self.error = EngineError("the gate failed, as it was told")

    @property
    def depends_on(self) -> Collection[str]:
        """Those before it."""
        return self._depends_on

    def ingest(self, rid: str, overrides: object | None) -> None:
        """See `Resource`."""
        self._fail_in("ingest")

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        """See `Resource`."""
        self._fail_in("admit")
        return NO_ROOM if self._refuses() else READY

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        """See `Resource`."""
        self._fail_in("plan")
        return None

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        """See `Resource`."""
        self._fail_in("commit")

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        """See `Resource`."""
        self._fail_in("rollback")

    def remove(self, rid: str) -> None:
        """See `Resource`."""
        self._fail_in("remove")

    def admit_retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: PublishedInfo | None
    ) -> AdmitOutcome:
        """See `Retrieving`."""
        self._fail_in("admit_retrieve")
        if self._refuses():
            return NO_ROOM
        self.pending -= 1
        return READY if self.pending < 0 else _PENDING

    def _refuses(self) -> bool:
        refuses, self.refuses = self.refuses, False
        return refuses

    def _fail_in(self, verb: str) -> None:
        if self.fails == verb:
            self.fails = ""
            raise self.error


class GateAhead(Gate):
    """One that plans ahead."""

    def promote(self, step: ResourceStep, ctx: StepContext) -> object:
        """See `PlansAhead`."""
        self._fail_in("promote")
        return None

    def clear_preplan(self) -> None:
        """See `PlansAhead`."""
        self._fail_in("clear_preplan")


def unless_told(gate: Gate, do: Callable[[], T]) -> T | None:
    """What `do` gives, None when the gate failed it as told."""
    try:
        return do()
    except EngineError as error:
        if error is not gate.error:
            raise
        return None
    finally:
        gate.refuses, gate.fails, gate.pending = False, "", 0
