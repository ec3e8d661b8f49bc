"""Requests come and go, and steps run or do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from treadle.engine.resources import Segment, SubmoduleStep
from treadle.errors import EngineError
from treadle.testing.resources.bench import Bench, expect
from treadle.testing.resources.machine import PADDING, RIDS, Machine, unless_told


class Life(Machine):
    """The verbs that every resource has."""

    @initialize(data=st.data())
    def open_some(self, data: st.DataObject) -> None:
        """Life begins with two requests: with none there is little that can go wrong."""
        self.open("a", data)
        self.open("b", data)

    @rule(rid=RIDS, data=st.data())
    def open(self, rid: str, data: st.DataObject) -> None:
        """A request comes; one that is there already changes nothing."""
        overrides, before = data.draw(self.subject.requests), self.main.holdings()
        try:
            self.main.runner.ingest_request(rid, overrides)
        except EngineError:
            self.unchanged(before, f"opening {rid!r}, which failed,")
            return
        if rid in self.stored:
            self.unchanged(before, f"opening {rid!r}, which was open,")
            return
        self.stored[rid] = 0
        self.likewise(lambda twin: twin.runner.ingest_request(rid, overrides))

    @rule(rid=RIDS, data=st.data())
    def fail_to_open(self, rid: str, data: st.DataObject) -> None:
        """The last resource cannot open it, so it is open nowhere."""
        overrides, before = data.draw(self.subject.requests), self.main.holdings()
        if rid in self.stored:
            return
        self.main.gate.fails = "ingest"
        try:
            self.main.runner.ingest_request(rid, overrides)
        except EngineError:
            self.main.gate.fails = ""
        self.unchanged(before, f"opening {rid!r}, which failed on a later resource,")

    @rule(rid=RIDS)
    def remove(self, rid: str) -> None:
        """A request goes, whether or not it was there; the second time changes nothing."""
        self.main.runner.remove_request(rid)
        after = self.main.holdings()
        self.main.runner.remove_request(rid)
        self.unchanged(after, f"removing {rid!r} again")
        self.forget(rid)

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def empty(self, data: st.DataObject) -> None:
        """All go: what is emptied has as much room as what is new. Then life begins anew."""
        for rid in sorted(self.stored):
            self.main.runner.remove_request(rid)
        overrides = data.draw(self.subject.requests)
        room, expected = _room(self.main, overrides), _room(Bench(self.subject), overrides)
        expect(room == expected, f"emptied, there is room for steps of {room} tokens; new, of {expected}")
        self.begin()

    @precondition(lambda self: self.able())
    @rule(data=st.data())
    def run(self, data: st.DataObject) -> None:
        """A step, whose verbs are said twice where that must not matter."""
        step = self.draw_step(data)
        if step is None or not self.admit(step):
            return
        admitted = self.main.holdings()
        self.main.runner.admit(step)
        self.unchanged(admitted, "admitting the same step again")
        once = self.main.shown(self.main.runner.plan(step))
        again = self.main.shown(self.main.runner.plan(step))
        expect(once == again, f"planned twice, a step gives {once}, then {again}")
        self.unchanged(admitted, "planning")
        self.commit(step)

    @precondition(lambda self: self.able())
    @rule(data=st.data(), how=st.sampled_from(["refused", "failing", "rolled back", "failing to plan"]))
    def break_off(self, data: st.DataObject, how: str) -> None:
        """A step that does not run leaves nothing behind."""
        step, before = self.draw_step(data), self.main.holdings()
        if step is None:
            return
        gate, runner = self.main.gate, self.main.runner
        gate.refuses, gate.fails = how == "refused", "admit" if how == "failing" else ""
        outcome = unless_told(gate, lambda: runner.admit(step))
        if outcome is not None and outcome.ok:
            if how == "failing to plan" and outcome.ready:
                gate.fails = "plan"
                unless_told(gate, lambda: runner.plan(step))
            runner.rollback_admit(step)
            runner.rollback_admit(step)
        self.unchanged(before, f"a step that was {how}")

    @precondition(lambda self: self.able())
    @rule(data=st.data())
    def lose_a_row(self, data: st.DataObject) -> None:
        """A request goes while its step is admitted, and then the step is rolled back."""
        step = self.draw_step(data)
        if step is None or not self.admit(step):
            return
        rid = data.draw(st.sampled_from(sorted({row.request_id for row in step.segments})))
        self.main.runner.remove_request(rid)
        self.main.runner.rollback_admit(step)
        self.forget(rid)
        self.twin = None  # it gave back in another order

    @precondition(lambda self: len(self.able()) > 1)
    @rule(data=st.data(), ends=st.permutations(["runs", "goes"]))
    def two_at_once(self, data: st.DataObject, ends: Sequence[str]) -> None:
        """Two steps of different requests are live; one runs and one does not, in any order."""
        first = self.draw_step(data)
        if first is None or not self.admit(first):
            return
        self.twin = None  # what ends first gives back first
        second = self.draw_step(data, without=[row.request_id for row in first.segments])
        live = {"runs": first}
        if second is not None and self.admit(second):
            live["goes"] = second
        for end in [each for each in ends if each in live]:
            if end == "runs":
                self.commit(first)
            else:
                self.main.runner.rollback_admit(live[end])

    @rule(data=st.data())
    def pad(self, data: st.DataObject) -> None:
        """Padding rows take nothing that a request could have, neither when opened nor in a step."""
        free = self.main.free()
        self.main.open_padding(PADDING)
        taken = {key: (free[key], now) for key, now in self.main.free().items() if now != free[key]}
        expect(not taken, f"opening padding rows took of what was free, key -> before, after: {taken}")
        self.likewise(lambda twin: twin.open_padding(PADDING))
        if (rows := self.draw_rows(data)) and self.admit(self.main.step(rows)):
            self.main.runner.rollback_admit(self.main.step(rows))
            self._run_padded(self.main.step(rows, PADDING))

    def _run_padded(self, step: SubmoduleStep) -> None:
        """The same rows were admitted without padding, so padding is no reason to refuse them."""
        outcome = self.main.runner.admit(step)
        expect(outcome.ready, f"a step that could run gave {outcome} with padding rows behind it")
        self.commit(step, PADDING)


def _room(bench: Bench, overrides: Mapping[str, object]) -> list[int]:
    """The spans of one-row steps that it takes, as long as they can be, each of a new request."""
    taken = []
    for rid in (f"probe {at}" for at in range(6)):
        try:
            bench.runner.ingest_request(rid, overrides)
        except EngineError:
            break
        span = bench.subject.limit
        while span and not bench.run(bench.step((Segment(rid, span),)))[0].ready:
            span //= 2
        taken.append(span)
    return taken
