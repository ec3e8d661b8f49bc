"""Keeps count of the units of a run: how many there are, how many are settled, how long they took."""

from __future__ import annotations

from dataclasses import replace

from treadle.telemetry.distribution import UNIT_SECONDS, Tally
from treadle.telemetry.events import MetricsSnapshot, PhaseStarted, UnitDone, UnitSkipped


class UnitBook:
    """Counts of units over all phases. For one thread at a time."""

    def __init__(self) -> None:
        self._workers = 1
        self._planned = self._done = self._skipped = 0
        self._bytes_planned = self._bytes_done = 0
        self._seconds = Tally(UNIT_SECONDS)

    @property
    def settled(self) -> int:
        """How many units are done or skipped."""
        return self._done + self._skipped

    def plan(self, event: PhaseStarted) -> None:
        """More units are to be worked on."""
        self._workers = event.workers
        self._planned += event.units
        self._bytes_planned += event.bytes

    def done(self, event: UnitDone) -> None:
        """One unit is done."""
        self._done += 1
        self._bytes_done += event.bytes
        self._seconds.observe(event.seconds)

    def skipped(self, event: UnitSkipped) -> None:
        """One unit was done by an earlier run."""
        self._skipped += 1
        self._bytes_done += event.bytes

    def filled(self, snapshot: MetricsSnapshot) -> MetricsSnapshot:
        """The snapshot with the numbers of this book."""
        return replace(
            snapshot,
            workers=self._workers,
            units_planned=self._planned,
            units_done=self._done,
            units_skipped=self._skipped,
            bytes_planned=self._bytes_planned,
            bytes_done=self._bytes_done,
            unit_seconds=self._seconds.distribution(),
        )
