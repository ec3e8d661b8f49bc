"""Padding rows, and steps of a fixed shape in static buffers, as they are captured and replayed."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from treadle.engine.resources import Segment
from treadle.testing.resources.bench import SLOTS, Drawn, expect
from treadle.testing.resources.forks import Forks
from treadle.testing.resources.machine import PADDING


class Padded(Forks):
    """What happens to padding rows: nothing."""

    @precondition(lambda self: self.able())
    @rule(data=st.data(), goes=st.sampled_from(PADDING))
    def pad(self, data: st.DataObject, goes: str) -> None:
        """Padding rows take nothing that a request could have, neither when opened nor in a step.

        They go as requests do, and come again.
        """
        self.main.runner.remove_request(goes)
        self.likewise(lambda twin: twin.runner.remove_request(goes))
        self.open_padding()
        step = self.draw_step(data)
        if step is None or not self.admit(step):
            return
        self.main.runner.rollback_admit(step)
        self._run_padded(self.main.step(step.rows, PADDING, before=step.before, after=step.after))

    @precondition(lambda self: self.subject.captured and self.able())
    @rule(data=st.data())
    def run_captured(self, data: st.DataObject) -> None:
        """A step of one token a row in static buffers, with padding rows and without."""
        self.open_padding()
        step = self.draw_captured(data)
        if step is not None and self.admit(step):
            self.commit(step)

    def draw_padded(self, data: st.DataObject, without: Collection[str] = ()) -> Drawn | None:
        """A step, with padding rows or without, in static buffers or not."""
        kinds = ["plain", "padded", *(["captured"] if self.subject.captured else [])]
        kind = data.draw(st.sampled_from(kinds))
        if kind == "plain":
            return self.draw_step(data, without)
        self.open_padding()
        return (
            self.draw_step(data, without, PADDING) if kind == "padded" else self.draw_captured(data, without)
        )

    def draw_captured(self, data: st.DataObject, without: Collection[str] = ()) -> Drawn | None:
        """One token for each of some requests, in buffers that the last captured step did not use."""
        able = [rid for rid in self.able() if rid not in without and self.stored.room_of(rid)]
        if not able:
            return None
        rids = data.draw(st.lists(st.sampled_from(able), min_size=1, unique=True))
        padding = data.draw(st.sampled_from([(), PADDING[:1], PADDING]))
        slot = (self.main.slot + 1) % SLOTS
        return self.main.step([Segment(rid, 1) for rid in rids], padding, slot=slot)

    def open_padding(self) -> None:
        """Open them, on both benches."""
        free = self.main.free()
        self.main.open_padding(PADDING)
        taken = {key: (free[key], now) for key, now in self.main.free().items() if now != free[key]}
        expect(not taken, f"opening padding rows took of what was free, key -> before, after: {taken}")
        self.likewise(lambda twin: twin.open_padding(PADDING))

    def _run_padded(self, step: Drawn) -> None:
        """The same rows were admitted without padding, so padding is no reason to refuse them."""
        outcome = self.main.runner.admit(step)
        expect(outcome.ready, f"a step that could run gave {outcome} with padding rows behind it")
        self.commit(step)
