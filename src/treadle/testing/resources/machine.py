"""What all events share: the two benches, what is drawn, and what is expected.

A twin sees what lasts (requests that opened, steps that committed) and nothing of what was undone: both
must be in the same state, to the order of their free lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from treadle.engine.resources import Segment
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.step import PublishedInfo
from treadle.testing.resources.bench import MAIN, NODE, WALK, Bench, Drawn, Subject, expect
from treadle.testing.resources.streams import Streams

RIDS = st.sampled_from("abcd")
PADDING = ("padding 0", "padding 1")

Told = tuple[Mapping[str, Mapping[str, object]], Mapping[str, Mapping[str, PublishedInfo]]]
"""Snapshots, and what was published when they were taken."""


class Machine(RuleBasedStateMachine):
    """Resources on a bench, and what is known of their requests.

    Attributes:
        main: what everything happens to.
        twin: what sees only what lasts; None when the order of its free lists may rightly be another.
        stored: what each open request stored.
        away: open requests that are offloaded.
        overrides: what each open request was opened with.
        begun: requests that begin behind a prefix with their next step.
        told: what was published so far.
        seen: what was seen of each stream when it was last in a step.
    """

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.begin()

    def begin(self) -> None:
        """With new resources."""
        self.main = Bench(self.subject)
        self.twin: Bench | None = Bench(self.subject)
        self.stored = Streams(self.subject.limit)
        self.away: set[str] = set()
        self.begun: set[str] = set()
        self.overrides: dict[str, Mapping[str, object]] = {}
        self.told: list[Told] = []
        self.seen: dict[tuple[str, str], dict[str, object]] = {}

    def able(self) -> list[str]:
        """The requests that may have a part in a step."""
        return [rid for rid in self.stored.with_room() if rid not in self.away]

    def draw_step(
        self,
        data: st.DataObject,
        without: Collection[str] = (),
        padding: Collection[str] = (),
        *,
        forks: bool | None = None,
    ) -> Drawn | None:
        """A step of some requests, with forks or without as is drawn; None when none can take one."""
        here = [rid for rid in sorted(self.stored) if rid not in self.away and rid not in without]
        forks = self.subject.forks is not None and data.draw(st.booleans()) if forks is None else forks
        before = self._draw_forks(data, here, {}) if forks else []
        begun = {fork.target: self.stored.of(fork.request_id, fork.label) for fork in before}
        rows = self._draw_rows(data, here, begun)
        if not rows:
            return None
        after = self._draw_forks(data, here, begun) if forks else []
        return self.main.step(rows, tuple(padding), before=before, after=after)

    def admit(self, step: Drawn, before: Mapping[str, Holdings] | None = None) -> bool:
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
            alike = step.again()
            expected = self.twin.runner.admit(alike)
            if expected.ok:
                self.twin.runner.rollback_admit(alike)
            expect(outcome == expected, f"a step gave {outcome}; where nothing was undone before, {expected}")
        return False

    def commit(self, step: Drawn) -> None:
        """Run an admitted step to its end; committed, it has nothing to give back."""
        shown = self.main.finish(step)
        after = self.main.holdings()
        self.main.runner.rollback_admit(step)
        self.unchanged(after, "rolling back a step that committed")
        self.stored.count(step)
        self.begun.difference_update(rid for rid, span, label in step.rows if span and label == MAIN)
        if self.twin is not None:
            outcome, expected = self.twin.run(step.again())
            expect(outcome.ready, f"a step ran; where nothing was undone before, it gave {outcome}")
            expect(shown == expected, f"planned was {shown}; where nothing was undone before, {expected}")
        self.look_at((rid, label) for rid, _, label in step.rows)
        for fork in (*step.before, *step.after):
            self._is_a_fork(step, fork)

    def look_at(self, streams: Iterable[tuple[str, str]]) -> None:
        """What these have stored is as it is to stay."""
        self.seen.update((stream, self.main.seen(*stream)) for stream in streams)

    def forget(self, rid: str) -> None:
        """The request is removed, also from the twin."""
        self.stored.pop(rid, None)
        self.seen = {stream: seen for stream, seen in self.seen.items() if stream[0] != rid}
        self.overrides.pop(rid, None)
        self.away.discard(rid)
        self.begun.discard(rid)
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

    @invariant()
    def stored_stays_stored(self) -> None:
        """What a request stored changes by its own steps only."""
        for stream, stored in self.seen.items():
            now = stored if stream[0] in self.away else self.main.seen(*stream)
            expect(now == stored, f"what {stream} stored was {stored}; without a step of its own it is {now}")

    def _is_a_fork(self, step: Drawn, fork: Fork) -> None:
        """It begins with what its source had; what came behind that is its own."""
        source, grown = (fork.request_id, fork.label), {(rid, label) for rid, _, label in step.rows}
        if fork.target not in grown and (fork in step.after or source not in grown):
            begun, expected = self.main.seen(*fork.target), self.main.seen(*source)
            expect(begun == expected, f"{fork} began with {begun}; its source had {expected}")
        self.look_at([fork.target])

    def _draw_rows(
        self, data: st.DataObject, rids: Collection[str], begun: Mapping[tuple[str, str], int]
    ) -> tuple[Segment, ...]:
        """Rows of some streams, each once, that stay within the limit."""
        room = self.stored.room(rids, begun)
        if not room:
            return ()
        streams = data.draw(st.lists(st.sampled_from(sorted(room)), min_size=1, unique=True))
        drawn = partial(data.draw, self.subject.spans)
        return tuple(Segment(rid, min(room[rid, label], drawn()), label) for rid, label in streams)

    def _draw_forks(
        self, data: st.DataObject, rids: Collection[str], begun: Collection[tuple[str, str]]
    ) -> list[Fork]:
        """One fork or none, of a stream that stored something into one that has not begun."""
        targets = [each for each in self.stored.not_begun(rids) if each not in begun]
        sources = [(rid, label) for rid in rids for label in self.stored[rid] if self.stored[rid][label]]
        if not targets or not sources or data.draw(st.integers(0, 2)) == 0:
            return []
        (rid, label), (to_rid, to_label) = (data.draw(st.sampled_from(each)) for each in (sources, targets))
        return [Fork(rid, to_label, label, None if to_rid == rid else to_rid)]


def _same(before: Holdings, after: Holdings) -> bool:
    """Whether nothing but kept units that nobody held are free now, behind or between the others."""
    if before == after:
        return True
    idle = before.kept.difference(*before.held.values())
    evicted = idle.intersection(after.free)
    free = tuple(unit for unit in after.free if unit not in evicted)
    return (free, after.held, after.kept) == (before.free, before.held, before.kept - evicted)
