"""What a run measures about itself: counters, seconds by stage, memory and CPU.

The life of metrics, in a caller that only knows success and failure:

    metrics = setup_metrics(sink, interval=1.0)
    outcome: Outcome = "failed"
    try:
        with metrics.stage("read"):
            metrics.add("rows_in", 1024)
        outcome = "finished"
    finally:
        finalize_metrics(metrics, outcome)
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from treadle.kernel.unwind import Unwind
from treadle.telemetry.events import MetricsFinalized, MetricsSnapshot, Outcome
from treadle.telemetry.sampler import ResourceSampler
from treadle.telemetry.sinks import Sink


class RunMetrics:
    """Counters, stage times, memory and CPU of one run; made by `setup_metrics`. Any thread may use it."""

    def __init__(self, sink: Sink, sampler: ResourceSampler) -> None:
        self._sink = sink
        self._sampler = sampler
        self._lock = threading.Lock()
        self._counters: Counter[str] = Counter()
        self._stage_seconds: dict[str, float] = {}
        self._final: MetricsFinalized | None = None

    def add(self, counter: str, n: int = 1) -> None:
        """Add `n` to a counter, which begins at 0."""
        with self._lock:
            self._counters[counter] += n

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the wall time of the block to the stage, also when the block fails."""
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            with self._lock:
                self._stage_seconds[name] = self._stage_seconds.get(name, 0.0) + seconds

    def snapshot(self) -> MetricsSnapshot:
        """The metrics now, names sorted; after `finalize_metrics`, those of the end."""
        with self._lock:
            return self._final.metrics if self._final is not None else self._measure()

    @property
    def outcome(self) -> Outcome | None:
        """How the run ended; None before `finalize_metrics`."""
        return self._final.outcome if self._final is not None else None

    def _measure(self) -> MetricsSnapshot:
        return MetricsSnapshot(
            counters=dict(sorted(self._counters.items())),
            stage_seconds=dict(sorted(self._stage_seconds.items())),
            peak_rss_bytes=self._sampler.peak_rss_bytes,
            cpu_seconds=self._sampler.cpu_seconds,
        )

    def finalize(self, outcome: Outcome) -> None:
        """See `finalize_metrics`."""
        with Unwind() as unwind:
            unwind.push(self._settle, outcome)
            unwind.push(self._sampler.stop)

    def _settle(self, outcome: Outcome) -> None:
        with self._lock:
            if self._final is not None:
                return
            self._final = MetricsFinalized(outcome, self._measure())
        self._sink.emit(self._final)


def setup_metrics(sink: Sink, interval: float = 1.0) -> RunMetrics:
    """Metrics with a running sampler that tells `sink` every `interval` seconds. Must be finalised."""
    sampler = ResourceSampler(interval, sink.emit)
    sampler.start()
    return RunMetrics(sink, sampler)


def finalize_metrics(metrics: RunMetrics, outcome: Outcome) -> MetricsSnapshot:
    """Stop the sampler, freeze the metrics, tell the sink. The first outcome is kept: later calls do nothing.

    Raises what the sink raised, after the sampler was stopped and the outcome kept.
    """
    metrics.finalize(outcome)
    return metrics.snapshot()
