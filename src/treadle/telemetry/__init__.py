"""What a run tells about itself: events, metrics, and the sinks they go to.

The names are loaded when they are asked for: a worker measures its units, and has no sinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.later import later

if TYPE_CHECKING:
    from treadle.telemetry.delta import MetricsDelta
    from treadle.telemetry.distribution import Distribution
    from treadle.telemetry.events import (
        Event,
        MetricsEndpoint,
        MetricsFinalized,
        MetricsSnapshot,
        MetricsUnsent,
        Outcome,
        PhaseEnded,
        PhaseStarted,
        ResourcesSampled,
        RowsAnswered,
        RunEnded,
        RunStarted,
        UnitDone,
        UnitSkipped,
    )
    from treadle.telemetry.meter import UnitMeter, UnitReport
    from treadle.telemetry.metrics import RunMetrics, finalize_metrics, setup_metrics
    from treadle.telemetry.opening import OpenSinks, check_prometheus, open_sinks
    from treadle.telemetry.prometheus_spec import PrometheusSpec
    from treadle.telemetry.sampler import ResourceSampler
    from treadle.telemetry.sinks import LogSink, NullSink, RecordingSink, Sink, fork

__all__ = [
    "Distribution",
    "Event",
    "LogSink",
    "MetricsDelta",
    "MetricsEndpoint",
    "MetricsFinalized",
    "MetricsSnapshot",
    "MetricsUnsent",
    "NullSink",
    "OpenSinks",
    "Outcome",
    "PhaseEnded",
    "PhaseStarted",
    "PrometheusSpec",
    "RecordingSink",
    "ResourceSampler",
    "ResourcesSampled",
    "RowsAnswered",
    "RunEnded",
    "RunMetrics",
    "RunStarted",
    "Sink",
    "UnitDone",
    "UnitMeter",
    "UnitReport",
    "UnitSkipped",
    "check_prometheus",
    "finalize_metrics",
    "fork",
    "open_sinks",
    "setup_metrics",
]

_MODULES = {
    "delta": ("MetricsDelta",),
    "distribution": ("Distribution",),
    "events": (
        "Event",
        "MetricsEndpoint",
        "MetricsFinalized",
        "MetricsSnapshot",
        "MetricsUnsent",
        "Outcome",
        "PhaseEnded",
        "PhaseStarted",
        "ResourcesSampled",
        "RowsAnswered",
        "RunEnded",
        "RunStarted",
        "UnitDone",
        "UnitSkipped",
    ),
    "meter": ("UnitMeter", "UnitReport"),
    "metrics": ("RunMetrics", "finalize_metrics", "setup_metrics"),
    "opening": ("OpenSinks", "check_prometheus", "open_sinks"),
    "prometheus_spec": ("PrometheusSpec",),
    "sampler": ("ResourceSampler",),
    "sinks": ("LogSink", "NullSink", "RecordingSink", "Sink", "fork"),
}
__getattr__, __dir__ = later(__name__, _MODULES)
