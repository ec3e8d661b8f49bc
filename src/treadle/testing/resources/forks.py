"""Streams that begin as others, with what is stored before a step or behind it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from treadle.engine.resources import Segment
from treadle.testing.resources.life import Life


class Forks(Life):
    """What happens to streams that fork; any other event may have forks as well."""

    @precondition(lambda self: self.subject.forks and self.able() and self.stored.with_tokens())
    @rule(data=st.data(), runs=st.booleans())
    def fork(self, data: st.DataObject, runs: bool) -> None:
        """A step forks and does not run, or it runs, and then the forks go on."""
        before, step = self.main.holdings(), self.draw_step(data, forks=True)
        if step is None or not self.admit(step):
            return
        if not runs:
            self.main.runner.rollback_admit(step)
            self.unchanged(before, "a step with forks that was rolled back")
            return
        self.commit(step)
        for rid, label in [fork.target for fork in (*step.before, *step.after)]:
            if self.stored.room_of(rid, label):
                row = self.main.step([Segment(rid, 1, label)])
                if self.admit(row):
                    self.commit(row)
