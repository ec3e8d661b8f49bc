"""What a pattern works with, and what a run returns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from treadle.domain.result import Counters
from treadle.manifest import Manifest
from treadle.processing.compile import StoragePlan
from treadle.processing.context import RunContext
from treadle.storage import OutputManifest, Session, WorkUnit
from treadle.telemetry import MetricsSnapshot, RunMetrics, Sink

WHOLE: Final = WorkUnit(id="00000-all", index=0, source="", bytes=0)
"""The unit of an output that is made from all inputs together."""


@dataclass(frozen=True)
class Job:
    """One run, ready to be carried out by a pattern.

    What the pattern writes through `session` stays invisible until the run commits it. `metrics` is None
    when the manifest does not ask for them.
    """

    ctx: RunContext
    manifest: Manifest
    plan: StoragePlan
    session: Session
    metrics: RunMetrics | None
    sink: Sink

    def timed(self, stage: str) -> AbstractContextManager[object]:
        """A block whose seconds count as those of `stage` (read, process, write), when there are metrics."""
        return nullcontext() if self.metrics is None else self.metrics.stage(stage)


@dataclass(frozen=True)
class RunOutcome:
    """A run that finished; one that failed or was cancelled raises instead."""

    counters: Counters
    outputs: Mapping[str, OutputManifest]
    metrics: MetricsSnapshot | None
    seconds: float
