"""What a run tells about itself: events, metrics, and the sinks they go to."""

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
    RunEnded,
    RunStarted,
    UnitDone,
    UnitSkipped,
)
from treadle.telemetry.meter import StageTimer, UnitMeter, UnitReport
from treadle.telemetry.metrics import RunMetrics, finalize_metrics, setup_metrics
from treadle.telemetry.opening import OpenSinks, check_prometheus, open_sinks
from treadle.telemetry.prometheus_spec import PrometheusSpec
from treadle.telemetry.sampler import ResourceSampler
from treadle.telemetry.sinks import LogSink, NullSink, RecordingSink, Sink, fork
from treadle.telemetry.spans import StageSpan

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
    "RunEnded",
    "RunMetrics",
    "RunStarted",
    "Sink",
    "StageSpan",
    "StageTimer",
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
