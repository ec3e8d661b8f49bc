"""What is checked: resources under a runner, with gates that refuse and fail when they are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treadle.engine.resources import (
    AdmitOutcome,
    FullAdmitOutcome,
    Resource,
    ResourceStep,
    Segment,
    StepContext,
    StepRunner,
    SubmoduleStep,
)
from treadle.engine.resources.protocols import Accounting, Holdings, PlansAhead
from treadle.engine.resources.resource import ReservesNothing
from treadle.engine.resources.step import NO_ROOM, READY
from treadle.errors import EngineError

if TYPE_CHECKING:
    from hypothesis import strategies as st

GATE, GATE_AHEAD = "~gate", "~gate ahead"
NODE, WALK = "node", "walk"


@dataclass(frozen=True)
class Subject:
    """What is checked, and how it is used; see `check_resources`."""

    make: Callable[[], Mapping[str, Resource]]
    requests: st.SearchStrategy[Mapping[str, object]]
    spans: st.SearchStrategy[int]
    limit: int
    parts: Callable[[Sequence[Segment]], Mapping[str, ResourceStep]] | None
    compute: Callable[[Mapping[str, Resource], SubmoduleStep], None] | None
    shown: Mapping[str, Callable[[object], object]]


def expect(kept: bool, broken: str) -> None:
    """Raise EngineError with what is broken, when it is not kept."""
    if not kept:
        raise EngineError(broken)


class Gate(ReservesNothing):
    """A resource behind others: when it refuses or fails, all of them must give back.

    Attributes:
        refuses: the next `admit` refuses.
        fails: the verb that raises `error` next.
    """

    def __init__(self, depends_on: Collection[str]) -> None:
        self._depends_on = tuple(depends_on)
        self.refuses = False
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
        refuses, self.refuses = self.refuses, False
        return NO_ROOM if refuses else READY

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        """See `Resource`."""
        self._fail_in("plan")
        return None

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


class Bench:
    """New resources under a runner, and what can be seen of them."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.resources = dict(subject.make())
        self.gate = Gate(self.resources)
        self.gate_ahead = GateAhead([k for k, each in self.resources.items() if isinstance(each, PlansAhead)])
        everything = {**self.resources, GATE: self.gate, GATE_AHEAD: self.gate_ahead}
        self.runner = StepRunner(everything, {NODE: tuple(everything)})
        self._accounting = {k: each for k, each in self.resources.items() if isinstance(each, Accounting)}
        self._units = {key: _units(held) for key, held in self.holdings().items()}

    @property
    def plans_ahead(self) -> bool:
        """Whether a resource does."""
        return bool(self.gate_ahead.depends_on)

    def open_padding(self, rids: Sequence[str]) -> None:
        """Open padding rows; those that are open stay as they are."""
        for rid in rids:
            self.runner.ingest_capture_row(rid)

    def step(self, rows: Sequence[Segment], padding: Sequence[str] = ()) -> SubmoduleStep:
        """A step of rows, and of padding rows behind them."""
        segments = (*rows, *(Segment(rid, 0) for rid in padding))
        parts = self.subject.parts
        own = {key: ResourceStep() for key in self.resources} if parts is None else parts(segments)
        real = tuple(dict.fromkeys(row.request_id for row in rows))
        ctx = StepContext(request_ids=real, padded_request_ids=(*real, *padding), graph_walk=WALK)
        return SubmoduleStep({**own, GATE: ResourceStep(), GATE_AHEAD: ResourceStep()}, segments, ctx)

    def finish(self, step: SubmoduleStep) -> dict[str, object]:
        """Plan, compute and commit an admitted step; returns what is shown of its plans."""
        shown = self.shown(self.runner.plan(step))
        if self.subject.compute is not None:
            self.subject.compute(self.resources, step)
        self.runner.commit(step)
        return shown

    def run(self, step: SubmoduleStep) -> tuple[FullAdmitOutcome, dict[str, object]]:
        """A whole step, with what is shown of its plans; nothing when it was refused or is not ready."""
        outcome = self.runner.admit(step)
        if outcome.ready:
            return outcome, self.finish(step)
        if outcome.ok:
            self.runner.rollback_admit(step)
        return outcome, {}

    def shown(self, plans: Mapping[str, object]) -> dict[str, object]:
        """What is to be compared of the plans."""
        return {key: show(plans[key]) for key, show in self.subject.shown.items() if key in plans}

    def holdings(self) -> dict[str, Holdings]:
        """Of the resources that show theirs; requests without anything left out."""
        found = {key: each.holdings() for key, each in self._accounting.items()}
        return {
            key: each._replace(held={rid: units for rid, units in sorted(each.held.items()) if units})
            for key, each in found.items()
        }

    def free(self) -> dict[str, tuple[int, ...]]:
        """Key -> its free units, of those that show them."""
        return {key: each.free for key, each in self.holdings().items()}

    def unheld(self) -> dict[str, int]:
        """Key -> how many units no request has, of those that show them."""
        held = {key: set().union(*each.held.values()) for key, each in self.holdings().items()}
        return {key: len(self._units[key]) - len(units) for key, units in held.items()}

    def check(self, open_ids: Collection[str]) -> None:
        """Each resource's own sums, and those of what it shows.

        Raises:
            EngineError: one does not hold.
        """
        self.runner.check_integrity()
        for key, holdings in self.holdings().items():
            _check_units(key, holdings, self._units[key])
            strangers = sorted(set(holdings.held).difference(open_ids))
            expect(not strangers, f"resource {key!r} holds units for {strangers}, which are not open")


def _units(holdings: Holdings) -> frozenset[int]:
    held = (unit for units in holdings.held.values() for unit in units)
    return frozenset(holdings.free).union(holdings.kept, held)


def _check_units(key: str, holdings: Holdings, expected: frozenset[int]) -> None:
    units = _units(holdings)
    lost, invented = sorted(expected - units), sorted(units - expected)
    expect(not lost and not invented, f"resource {key!r} lost the units {lost}, and has new ones: {invented}")
    free = Counter(holdings.free)
    twice = sorted(unit for unit, times in free.items() if times > 1)
    expect(not twice, f"resource {key!r} has units twice in its free list: {twice}")
    owners = Counter(unit for units in holdings.held.values() for unit in units)
    both = sorted(unit for unit in free if unit in owners or unit in holdings.kept)
    expect(not both, f"resource {key!r} has units that are free and in use: {both}")
    several = sorted(
        unit for unit, times in owners.items() if times > 1 and unit not in holdings.shared | holdings.kept
    )
    expect(not several, f"resource {key!r} has units with several owners: {several}")
