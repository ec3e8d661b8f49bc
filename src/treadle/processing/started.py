"""A run that has started."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from treadle.manifest import Manifest
from treadle.processing.compile import StoragePlan
from treadle.processing.context import RunContext
from treadle.telemetry import RunMetrics, Sink


@dataclass(frozen=True)
class StartedRun:
    """Everything that dispatching a run needs. `metrics` is None when the manifest does not ask for them."""

    manifest_path: str
    ctx: RunContext
    manifest: Manifest
    plan: StoragePlan
    metrics: RunMetrics | None
    sink: Sink

    def timed(self, stage: str) -> AbstractContextManager[object]:
        """A block whose seconds count as those of `stage` (read, process, write), when there are metrics."""
        return nullcontext() if self.metrics is None else self.metrics.stage(stage)
