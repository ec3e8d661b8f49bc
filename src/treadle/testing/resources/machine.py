"""What all events share: the two benches, what is drawn, and what is expected.

A twin sees what lasts (requests that opened, steps that committed) and nothing of what was undone: both
must be in the same state, to the order of their free lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from treadle.engine.resources import Segment, SubmoduleStep
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.step import PublishedInfo
from treadle.errors import EngineError
from treadle.testing.resources.bench import NODE, WALK, Bench, Gate, Subject, expect

T = TypeVar("T")

RIDS = st.sampled_from("abcd")
PADDING = ("padding 0", "padding 1")

Told = tuple[Mapping[str, Mapping[str, object]], Mapping[str, Mapping[str, PublishedInfo]]]
"""Snapshots, and what was published when they were taken."""


class Machine(RuleBasedStateMachine):
    """Resources on a bench, and what is known of their requests.

    Attributes:
        main: what everything happens to.
        twin: what sees only what lasts; None when the order of its free lists may rightly be another.
        stored: open request -> tokens that it stored.
        away: open requests that are offloaded.
        told: what was published so far.
    """

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.begin()

    def begin(self) -> None:
        """With new resources."""
        self.main = Bench(self.subject)
        self.twin: Bench | None = Bench(self.subject)
        self.stored: dict[str, int] = {}
        self.away: set[str] = set()
        self.told: list[Told] = []

    def able(self) -> list[str]:
        """The requests that may have a part in a step."""
        return [rid for rid in sorted(self.stored) if self._left(rid) and rid not in self.away]

    def draw_step(self, data: st.DataObject, without: Collection[str] = ()) -> SubmoduleStep | None:
        """A step of some requests; None when none can take one."""
        rows = self.draw_rows(data, without)
        return self.main.step(rows) if rows else None

    def draw_rows(self, data: st.DataObject, without: Collection[str] = ()) -> tuple[Segment, ...]:
        """Rows of some requests, each once, that stay within the limit."""
        able = [rid for rid in self.able() if rid not in without]
        if not able:
            return ()
        rids = data.draw(st.lists(st.sampled_from(able), min_size=1, unique=True))
        return tuple(Segment(rid, min(self._left(rid), data.draw(self.subject.spans))) for rid in rids)

    def admit(self, step: SubmoduleStep, before: Mapping[str, Holdings] | None = None) -> bool:
        """Whether the step may run now; when not, nothing of it is left, and the twin refuses it too.

        `before` is what was held before another step was staged, where one is.
        """
        before = self.main.holdings() if before is None else before
        outcome = self.main.runner.admit(step)
        if outcome.ready:
            return True
        if outcome.ok:
            self.main.runner.rollback_admit(step)
        self.unchanged(before, "a step that was refused")
        if self.twin is not None:
            alike = self.main.step(rows_of(step))
            expected = self.twin.runner.admit(alike)
            if expected.ok:
                self.twin.runner.rollback_admit(alike)
            expect(outcome == expected, f"a step gave {outcome}; where nothing was undone before, {expected}")
        return False

    def commit(self, step: SubmoduleStep, padding: Collection[str] = ()) -> None:
        """Run an admitted step to its end; committed, it has nothing to give back."""
        shown = self.main.finish(step)
        after = self.main.holdings()
        self.main.runner.rollback_admit(step)
        self.unchanged(after, "rolling back a step that committed")
        self.count(step)
        if self.twin is not None:
            outcome, expected = self.twin.run(self.twin.step(rows_of(step), tuple(padding)))
            expect(outcome.ready, f"a step ran; where nothing was undone before, it gave {outcome}")
            expect(shown == expected, f"planned was {shown}; where nothing was undone before, {expected}")

    def count(self, step: SubmoduleStep) -> None:
        """The step's tokens are stored."""
        for row in rows_of(step):
            self.stored[row.request_id] += row.span

    def forget(self, rid: str) -> None:
        """The request is removed, also from the twin."""
        self.stored.pop(rid, None)
        self.away.discard(rid)
        self.likewise(lambda twin: twin.runner.remove_request(rid))

    def likewise(self, do: Callable[[Bench], object]) -> None:
        """What lasts happens to the twin, too."""
        if self.twin is not None:
            do(self.twin)

    def unchanged(self, before: Mapping[str, Holdings], by: str) -> None:
        """Expect the holdings to be what they were, free lists in their former order.

        What was kept and nobody held may have made room: that is a cache's way, and not undone.
        """
        after = self.main.holdings()
        changed = [key for key in before if not _same(before[key], after[key])]
        told = "; ".join(f"{key!r} had {before[key]}, has {after[key]}" for key in changed)
        expect(not changed, f"{by} should leave nothing behind: {told}")
        if after != before:
            self.twin = None  # there it is kept still

    @invariant()
    def sums_are_right(self) -> None:
        """Nothing is lost, invented, or owned twice."""
        self.main.check({*self.stored, *PADDING})

    @invariant()
    def nothing_undone_is_left(self) -> None:
        """What never saw it is in the same state."""
        if self.twin is not None:
            self.unchanged(self.twin.holdings(), "all that was undone (the first is what never saw it)")

    @invariant()
    def told_stays_told(self) -> None:
        """A snapshot does not change with its request."""
        for snapshots, told in self.told[-3:]:
            later = self.main.runner.publish_from_snapshots(snapshots, list(snapshots), NODE, WALK)
            expect(later == told, f"a snapshot is published as {later}; when it was taken that was {told}")

    def _left(self, rid: str) -> int:
        return self.subject.limit - self.stored[rid]


def rows_of(step: SubmoduleStep) -> tuple[Segment, ...]:
    """Its rows without the padding."""
    return tuple(row for row in step.segments if row.request_id not in PADDING)


def unless_told(gate: Gate, do: Callable[[], T]) -> T | None:
    """What `do` gives, None when the gate failed it as told."""
    try:
        return do()
    except EngineError as error:
        if error is not gate.error:
            raise
        return None
    finally:
        gate.refuses, gate.fails = False, ""


def _same(before: Holdings, after: Holdings) -> bool:
    """Whether nothing but kept units that nobody held are free now, behind or between the others."""
    if before == after:
        return True
    idle = before.kept.difference(*before.held.values())
    evicted = idle.intersection(after.free)
    free = tuple(unit for unit in after.free if unit not in evicted)
    return (free, after.held, after.kept) == (before.free, before.held, before.kept - evicted)
