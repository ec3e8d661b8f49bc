"""What is checked: resources under a runner, with gates behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from treadle.engine.resources import (
    FullAdmitOutcome,
    Resource,
    ResourceStep,
    Segment,
    StepContext,
    StepRunner,
    SubmoduleStep,
)
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.protocols import Accounting, Capturing, Holdings, PlansAhead
from treadle.errors import EngineError
from treadle.testing.resources.gates import Gate, GateAhead

if TYPE_CHECKING:
    from hypothesis import strategies as st

T = TypeVar("T")

Parts = Mapping[str, ResourceStep]
"""What each resource has to do in a step."""

GATE, GATE_AHEAD = "~gate", "~gate ahead"
NODE, WALK, MAIN = "node", "walk", "main"
SLOTS, MOST_ROWS = 2, 8
"""Of the static buffers."""


@dataclass(frozen=True)
class Subject:
    """What is checked, and how it is used; see `check_resources`."""

    make: Callable[[], Mapping[str, Resource]]
    requests: st.SearchStrategy[Mapping[str, object]]
    spans: st.SearchStrategy[int]
    limit: int
    parts: Callable[[Sequence[Segment]], Parts] | None
    forks: Callable[[Parts, Sequence[Fork], Sequence[Fork]], Parts] | None
    walks: Callable[[Mapping[str, object], int], tuple[str, Sequence[int]] | None] | None
    captured: bool
    compute: Callable[[Mapping[str, Resource], SubmoduleStep], None] | None
    shown: Mapping[str, Callable[[object], object]]
    seen: Mapping[str, Callable[[Resource, str, str], object]]


@dataclass
class Drawn(SubmoduleStep):
    """A step, with what the check must know of it.

    Attributes:
        before: the forks that it makes when it is admitted.
        after: those that it makes when it commits.
    """

    before: tuple[Fork, ...] = ()
    after: tuple[Fork, ...] = ()

    @property
    def rows(self) -> tuple[Segment, ...]:
        """Its segments without the padding."""
        return tuple(row for row in self.segments if row.request_id not in self.ctx.padding_ids)

    @property
    def request_ids(self) -> list[str]:
        """The requests that it reads or changes, sorted."""
        forked = (rid for each in (*self.before, *self.after) for rid in (each.request_id, each.target[0]))
        return sorted({row.request_id for row in self.rows}.union(forked))

    def again(self) -> Drawn:
        """Another step that is declared alike."""
        return replace(self, ctx=replace(self.ctx, plan_results={}, is_preplan=False))


def expect(kept: bool, broken: str) -> None:
    """Raise EngineError with what is broken, when it is not kept."""
    if not kept:
        raise EngineError(broken)


class Bench:
    """New resources under a runner, and what can be seen of them.

    Attributes:
        slot: the buffers that the last captured step was planned into.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.resources = dict(subject.make())
        self.gate = Gate(self.resources)
        self.gate_ahead = GateAhead([k for k, each in self.resources.items() if isinstance(each, PlansAhead)])
        everything = {**self.resources, GATE: self.gate, GATE_AHEAD: self.gate_ahead}
        self.runner = StepRunner(everything, {NODE: tuple(everything)})
        self.slot = 0
        self._accounting = self.having(Accounting)  # type: ignore[type-abstract]
        self._units = {key: _units(held) for key, held in self.holdings().items()}

    @property
    def plans_ahead(self) -> bool:
        """Whether a resource does."""
        return bool(self.gate_ahead.depends_on)

    def having(self, ability: type[T]) -> dict[str, T]:
        """The resources that have an ability, by key."""
        return {key: each for key, each in self.resources.items() if isinstance(each, ability)}

    def open_padding(self, rids: Sequence[str]) -> None:
        """Open padding rows, and their buffers; those that are open stay as they are."""
        for rid in rids:
            self.runner.ingest_capture_row(rid)
        if self.subject.captured and self.having(Capturing):  # type: ignore[type-abstract]
            self.runner.build_accelerator_graph_buffers(SLOTS, MOST_ROWS, self.subject.limit, NODE)
            self.runner.build_accelerator_graph_buffers(1, 1, 1, NODE)

    def step(
        self,
        rows: Sequence[Segment],
        padding: Sequence[str] = (),
        *,
        before: Sequence[Fork] = (),
        after: Sequence[Fork] = (),
        slot: int | None = None,
    ) -> Drawn:
        """A step of rows, and of padding rows behind them."""
        segments = (*rows, *(Segment(rid, 0) for rid in padding))
        own: Parts = {key: ResourceStep() for key in self.resources}
        if self.subject.parts is not None:
            own = self.subject.parts(segments)
        if self.subject.forks is not None:
            own = self.subject.forks(own, before, after)
        real = tuple(dict.fromkeys(row.request_id for row in rows))
        ctx = StepContext(request_ids=real, padded_request_ids=(*real, *padding), graph_walk=WALK, slot=slot)
        parts = {**own, GATE: ResourceStep(), GATE_AHEAD: ResourceStep()}
        return Drawn(parts, segments, ctx, tuple(before), tuple(after))

    def plan(self, step: SubmoduleStep) -> dict[str, object]:
        """Plan an admitted step; returns what is shown of its plans."""
        self.slot = self.slot if step.ctx.slot is None else step.ctx.slot
        self.runner.plan(step)
        return self.shown(step)

    def shown(self, step: SubmoduleStep) -> dict[str, object]:
        """What is to be compared of the plans of a step, as they are now."""
        plans = step.ctx.plan_results
        return {key: show(plans[key]) for key, show in self.subject.shown.items() if key in plans}

    def finish(self, step: SubmoduleStep) -> dict[str, object]:
        """Plan, compute and commit an admitted step; returns what is shown of its plans."""
        shown = self.plan(step)
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

    def seen(self, rid: str, label: str = MAIN) -> dict[str, object]:
        """Key -> what that resource has stored in a stream, of those that let it be seen."""
        return {key: see(self.resources[key], rid, label) for key, see in self.subject.seen.items()}

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
