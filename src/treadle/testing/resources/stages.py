"""Steps that are reserved and planned ahead, and whatever may come between."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from treadle.engine.resources.protocols import Holdings
from treadle.testing.resources.bench import Drawn, expect
from treadle.testing.resources.gates import unless_told
from treadle.testing.resources.padding import Padded


class Stages(Padded):
    """What those do that plan ahead, with padding rows and without."""

    @precondition(lambda self: self.main.plans_ahead and self.able())
    @rule(data=st.data(), cleared=st.booleans())
    def run_staged(self, data: st.DataObject, cleared: bool) -> None:
        """The step that was staged comes, as another object that is declared alike.

        Cleared when it is admitted, it keeps what it reserved, and plans anew.
        """
        staged, before = self.draw_padded(data), self.main.holdings()
        if staged is None or not self._stage(staged, before):
            return
        step = staged.again()
        if self.admit(step, before):
            if cleared:
                self._clear(self.main.holdings())
            self.commit(step)
        self._nothing_is_staged("ran")

    @precondition(lambda self: self.main.plans_ahead and self.able())
    @rule(data=st.data(), how=st.sampled_from(["refused", "failing", "failing to plan", "rolled back"]))
    def break_off_staged(self, data: st.DataObject, how: str) -> None:
        """It comes, and does not run."""
        staged, before = self.draw_padded(data), self.main.holdings()
        if staged is None or not self._stage(staged, before):
            return
        step, gate, runner = staged.again(), self.main.gate, self.main.runner
        gate.refuses, gate.fails = how == "refused", "admit" if how == "failing" else ""
        outcome = unless_told(gate, lambda: runner.admit(step))
        if outcome is not None and outcome.ready and how == "failing to plan":
            gate.fails = "plan"
            unless_told(gate, lambda: self.main.plan(step))
        runner.rollback_admit(step)
        self.unchanged(before, f"a staged step that was {how}")
        self._nothing_is_staged(f"was {how}")

    @precondition(lambda self: self.main.plans_ahead and self.able())
    @rule(data=st.data(), how=st.sampled_from(["cleared", "cleared by half", "another", "less a row"]))
    def drop_staged(self, data: st.DataObject, how: str) -> None:
        """It does not come: the stage is cleared, another step comes, or one of its requests goes."""
        staged, before = self.draw_padded(data), self.main.holdings()
        if staged is None or not self._stage(staged, before):
            return
        if how == "less a row":
            self.remove(data.draw(st.sampled_from(staged.request_ids)), data)
        elif how.startswith("cleared"):
            self.main.gate_ahead.fails = "clear_preplan" if how == "cleared by half" else ""
            self._clear(before)
        elif (step := self.draw_step(data)) is not None and self.admit(step, before):
            self.commit(step)
        self._nothing_is_staged(f"was dropped: {how}")

    @precondition(lambda self: self.main.plans_ahead and self.able())
    @rule(data=st.data())
    def stage_beside(self, data: st.DataObject) -> None:
        """A stage is made and dropped while a step of other requests is live, which keeps all it has."""
        live = self.draw_padded(data)
        if live is None or not self.admit(live):
            return
        held, planned = self.main.holdings(), self.main.plan(live)
        staged = self.draw_padded(data, without=live.request_ids)
        if staged is not None and self._stage(staged, held):
            now = self.main.shown(live)
            expect(now == planned, f"planned was {planned}; with another step staged it is {now}")
            self._clear(held)
        self.commit(live)

    @precondition(lambda self: self.main.plans_ahead and self.able())
    @rule(data=st.data(), how=st.sampled_from(["refused", "failing", "failing to plan"]))
    def fail_to_stage(self, data: st.DataObject, how: str) -> None:
        """A stage that is refused or fails leaves nothing behind."""
        step, before = self.draw_padded(data), self.main.holdings()
        if step is None:
            return
        gate, runner = self.main.gate_ahead, self.main.runner
        gate.refuses, gate.fails = how == "refused", "admit" if how == "failing" else ""
        outcome = unless_told(gate, lambda: runner.pre_admit(step))
        if outcome is not None and outcome.ok:
            gate.fails = "plan"
            unless_told(gate, lambda: runner.pre_plan(step))
        self.unchanged(before, f"a stage that was {how}")
        expect(not runner.staged, f"a step is staged that was {how}")

    def _stage(self, step: Drawn, before: Mapping[str, Holdings]) -> bool:
        runner = self.main.runner
        if runner.pre_admit(step).ready:
            runner.pre_plan(step)
            expect(runner.staged, "a step was admitted and planned ahead, and nothing is staged")
            return True
        runner.clear_preplan()
        self.unchanged(before, "a stage that was refused")
        return False

    def _clear(self, before: Mapping[str, Holdings]) -> None:
        unless_told(self.main.gate_ahead, self.main.runner.clear_preplan)
        self.unchanged(before, "a stage that was cleared")
        self.main.runner.clear_preplan()
        self.unchanged(before, "clearing when nothing is staged")

    def _nothing_is_staged(self, what: str) -> None:
        expect(not self.main.runner.staged, f"a stage is left over of a step that {what}")
