"""What a run measures about itself: counters, seconds by stage, units, memory and CPU.

The life of metrics, in a caller that only knows success and failure:

    metrics = setup_metrics(sink, interval=1.0)
    outcome: Outcome = "failed"
    try:
        with metrics.stage("read"):
            metrics.add("rows_in", 1024)
        outcome = "finished"
    finally:
        finalize_metrics(metrics, outcome)

What is measured inside a unit comes by its `UnitMeter`: live when the unit is worked on in this process
(`RunMetrics.unit_meter`), with the event `UnitDone` when it is another one. `RunMetrics` is a sink for that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from treadle.kernel.unwind import Unwind
from treadle.telemetry.delta import MetricsDelta
from treadle.telemetry.events import (
    Event,
    MetricsFinalized,
    MetricsSnapshot,
    Outcome,
    PhaseStarted,
    ResourcesSampled,
    UnitDone,
    UnitSkipped,
)
from treadle.telemetry.meter import Meter, StageTimer, UnitMeter
from treadle.telemetry.sinks import Sink
from treadle.telemetry.units import UnitBook


class RunMetrics:
    """Counters, stage times, units, memory and CPU of one run; see `setup_metrics`. Any thread may use it."""

    def __init__(self, sink: Sink, interval: float, clock: Callable[[], float] = time.time) -> None:
        from treadle.telemetry.sampler import ResourceSampler  # here: it needs psutil, and few runs need it

        self._sink = sink
        self._sampler = ResourceSampler(interval, self._sampled)
        self._clock = clock
        self._lock = threading.Lock()
        self._own = Meter()
        self._settled = MetricsDelta()  # of the units that are done
        self._live: dict[tuple[str, str], UnitMeter] = {}
        self._units = UnitBook()
        self._resources = ResourcesSampled(0, 0.0, 1)
        self._counted: object = None
        self._last_progress = clock()
        self._final: MetricsFinalized | None = None

    def start(self) -> None:
        """Begin to sample. Raises what the sink raises; then nothing runs."""
        self._sampler.start()

    def add(self, counter: str, n: int = 1) -> None:
        """Add `n` to a counter, which begins at 0."""
        self._own.add(counter, n)

    def add_all(self, counts: Mapping[str, int]) -> None:
        """Add to several counters at once."""
        self._own.add_all(counts)

    def stage(self, name: str) -> StageTimer:
        """Add the wall time of the block to the stage, also when the block fails."""
        return self._own.stage(name)

    def unit_meter(
        self, unit: str, phase: str = "main", *, counted: bool = True, spans: bool = False
    ) -> UnitMeter:
        """A meter of a unit that is worked on in this process: what it counts is seen at once.

        It belongs to the run until the `UnitDone` of that unit and phase brings its report.
        """
        meter = UnitMeter(unit, phase, counted=counted, spans=spans)
        with self._lock:
            self._live[phase, unit] = meter
        return meter

    def emit(self, event: Event) -> None:
        """Follow the units of the run. Everything else is nothing to the metrics."""
        with self._lock:
            if isinstance(event, PhaseStarted):
                self._units.plan(event)
            elif isinstance(event, UnitDone):
                self._settle_unit(event)
            elif isinstance(event, UnitSkipped):
                self._settled += MetricsDelta(event.counters)
                self._units.skipped(event)

    def close(self) -> None:
        """Nothing: metrics end with `finalize_metrics`."""

    def snapshot(self) -> MetricsSnapshot:
        """The metrics now, names sorted; after `finalize_metrics`, those of the end."""
        with self._lock:
            return self._final.metrics if self._final is not None else self._measure()

    @property
    def outcome(self) -> Outcome | None:
        """How the run ended; None before `finalize_metrics`."""
        return self._final.outcome if self._final is not None else None

    def finalize(self, outcome: Outcome) -> None:
        """See `finalize_metrics`."""
        with Unwind() as unwind:
            unwind.push(self._settle, outcome)
            unwind.push(self._sampler.stop)

    def _settle_unit(self, event: UnitDone) -> None:
        live = self._live.pop((event.phase, event.unit), None)
        if event.report is not None:
            self._settled += event.report.delta
        elif live is not None:
            self._settled += live.delta()
        self._units.done(event)

    def _measure(self) -> MetricsSnapshot:
        totals = sum((each.delta() for each in self._live.values()), self._settled + self._own.delta())
        self._note_progress(totals)
        return self._units.filled(
            MetricsSnapshot(
                counters=totals.counters,
                stage_seconds=totals.stage_seconds,
                peak_rss_bytes=self._sampler.peak_rss_bytes,
                cpu_seconds=self._sampler.cpu_seconds,
                rss_bytes=self._resources.rss_bytes,
                processes=self._resources.processes,
                last_progress=self._last_progress,
                queues=self._depths(),
                totals=totals,
            )
        )

    def _note_progress(self, totals: MetricsDelta) -> None:
        counted = (totals.counters, totals.batch_rows.count, self._units.settled)
        if counted != self._counted:
            self._counted = counted
            self._last_progress = self._clock()

    def _depths(self) -> dict[str, int]:
        depths: dict[str, int] = {}
        for meter in self._live.values():
            for name, depth in meter.depths.items():
                depths[name] = depths.get(name, 0) + depth
        return dict(sorted(depths.items()))

    def _sampled(self, sample: ResourcesSampled) -> None:
        with self._lock:
            self._resources = sample
            measured = self._measure()
        self._sink.emit(replace(sample, metrics=measured))

    def _settle(self, outcome: Outcome) -> None:
        with self._lock:
            if self._final is not None:
                return
            self._final = MetricsFinalized(outcome, self._measure())
        self._sink.emit(self._final)


def setup_metrics(sink: Sink, interval: float = 1.0) -> RunMetrics:
    """Metrics with a running sampler that tells `sink` every `interval` seconds. Must be finalised."""
    metrics = RunMetrics(sink, interval)
    metrics.start()
    return metrics


def finalize_metrics(metrics: RunMetrics, outcome: Outcome) -> MetricsSnapshot:
    """Stop the sampler, freeze the metrics, tell the sink. The first outcome is kept: later calls do nothing.

    Raises what the sink raised, after the sampler was stopped and the outcome kept.
    """
    metrics.finalize(outcome)
    return metrics.snapshot()
