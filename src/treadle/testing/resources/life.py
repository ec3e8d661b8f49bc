"""Requests come and go, and steps run or do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from treadle.engine.resources import Segment
from treadle.errors import EngineError
from treadle.testing.resources.bench import NODE, WALK, Bench, Drawn, expect
from treadle.testing.resources.gates import unless_told
from treadle.testing.resources.machine import RIDS, Machine

BROKEN_OFF = ["refused", "failing", "rolled back", "failing to roll back", "failing to plan"]


class Life(Machine):
    """The verbs that every resource has."""

    @initialize(data=st.data())
    def open_some(self, data: st.DataObject) -> None:
        """Life begins with two requests: with none there is little that can go wrong."""
        self._go_on(data)

    @rule(rid=RIDS, data=st.data(), fails=st.booleans())
    def open(self, rid: str, data: st.DataObject, fails: bool = False) -> None:
        """A request comes; one that is there already changes nothing.

        Where the last resource cannot open it, or any refuses the override, it is open nowhere.
        """
        overrides, before = data.draw(self.subject.requests), self.main.holdings()
        self.main.gate.fails = "ingest" if fails else ""
        try:
            self.main.runner.ingest_request(rid, overrides)
        except EngineError:
            self.unchanged(before, f"opening {rid!r}, which failed,")
            return
        finally:
            self.main.gate.fails = ""
        if rid in self.stored:
            self.unchanged(before, f"opening {rid!r}, which was open,")
            return
        self.stored.open(rid)
        self.overrides[rid] = overrides
        self.likewise(lambda twin: twin.runner.ingest_request(rid, overrides))

    @precondition(lambda self: self.stored)
    @rule(rid=RIDS, data=st.data(), failing=st.booleans())
    def remove(self, rid: str, data: st.DataObject, failing: bool = False) -> None:
        """A request goes, whether or not it was there, and whatever fails; again, it changes nothing."""
        gate, runner = self.main.gate, self.main.runner
        gate.fails = "remove" if failing else ""
        unless_told(gate, lambda: runner.remove_request(rid))
        after = self.main.holdings()
        runner.remove_request(rid)
        self.unchanged(after, f"removing {rid!r} again")
        self.forget(rid)
        self._go_on(data)

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), backwards=st.booleans())
    def empty(self, data: st.DataObject, backwards: bool) -> None:
        """All go: what is emptied has as much room as what is new. Then life begins anew."""
        for rid in sorted(self.stored, reverse=backwards):
            self.main.runner.remove_request(rid)
        overrides = data.draw(self.subject.requests)
        room, expected = _room(self.main, overrides), _room(Bench(self.subject), overrides)
        expect(room == expected, f"emptied, there is room for steps of {room} tokens; new, of {expected}")
        self.begin()
        self._go_on(data)

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
        once, again = (self.main.plan(step) for _ in range(2))
        expect(once == again, f"planned twice, a step gives {once}, then {again}")
        self.unchanged(admitted, "planning")
        self.commit(step)

    @precondition(lambda self: self.able())
    @rule(data=st.data(), how=st.sampled_from(BROKEN_OFF))
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
                unless_told(gate, lambda: self.main.plan(step))
            gate.fails = "rollback" if how == "failing to roll back" else ""
            unless_told(gate, lambda: runner.rollback_admit(step))
            runner.rollback_admit(step)
        self.unchanged(before, f"a step that was {how}")

    @precondition(lambda self: self.able())
    @rule(data=st.data(), how=st.sampled_from(["a row goes", "half is committed"]))
    def lose_rows(self, data: st.DataObject, how: str) -> None:
        """A request goes while its step is admitted, or all of them, for a later resource cannot commit."""
        step = self.draw_step(data)
        if step is None or not self.admit(step):
            return
        if how == "half is committed":
            self.main.gate.fails = "commit"
            unless_told(self.main.gate, lambda: self.main.finish(step))
            self.main.runner.rollback_admit(step)
            self._lose(data, step.request_ids)
        else:
            rid = data.draw(st.sampled_from(step.request_ids))
            self.main.runner.remove_request(rid)
            self.main.runner.rollback_admit(step)
            self._lose(data, [rid])

    @precondition(lambda self: len(self.able()) > 1)
    @rule(data=st.data(), ends=st.permutations(["runs", "goes"]))
    def two_at_once(self, data: st.DataObject, ends: Sequence[str]) -> None:
        """Two steps of different requests are live; one runs and one does not, in any order."""
        first = self.draw_step(data)
        if first is None or not self.admit(first):
            return
        self.twin = None  # what ends first gives back first
        second = self.draw_step(data, without=first.request_ids)
        live: dict[str, Drawn] = {"runs": first}
        if second is not None and self.admit(second):
            live["goes"] = second
        for end in [each for each in ends if each in live]:
            if end == "runs":
                self.commit(first)
            else:
                self.main.runner.rollback_admit(live[end])

    def _lose(self, data: st.DataObject, rids: Sequence[str]) -> None:
        """These are gone, and gave back in an order of their own."""
        self.twin = None
        for rid in rids:
            self.main.runner.remove_request(rid)
            self.forget(rid)
        self._go_on(data)

    def _go_on(self, data: st.DataObject) -> None:
        """When all are gone two come."""
        for rid in "ab" if not self.stored else "":
            self.open(rid, data)


def _room(bench: Bench, overrides: Mapping[str, object]) -> list[int]:
    """The spans of one-row steps that it takes, as long as they can be, each of a new request."""
    taken = []
    for rid in (f"probe {at}" for at in range(6)):
        try:
            bench.runner.ingest_request(rid, overrides)
        except EngineError:
            break
        bench.runner.release_cached_prefix(rid, NODE, WALK)  # or else it begins where others left off
        span = bench.subject.limit
        while span and not bench.run(bench.step((Segment(rid, span),)))[0].ready:
            span //= 2
        taken.append(span)
    return taken
