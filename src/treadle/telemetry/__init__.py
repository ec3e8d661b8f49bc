"""What a run tells about itself: events, metrics, and the sinks they go to."""

from treadle.telemetry.events import (
    Event,
    MetricsFinalized,
    MetricsSnapshot,
    Outcome,
    ResourcesSampled,
    RunEnded,
    RunStarted,
    UnitDone,
)
from treadle.telemetry.metrics import RunMetrics, finalize_metrics, setup_metrics
from treadle.telemetry.sampler import ResourceSampler
from treadle.telemetry.sinks import LogSink, NullSink, RecordingSink, Sink

__all__ = [
    "Event",
    "LogSink",
    "MetricsFinalized",
    "MetricsSnapshot",
    "NullSink",
    "Outcome",
    "RecordingSink",
    "ResourceSampler",
    "ResourcesSampled",
    "RunEnded",
    "RunMetrics",
    "RunStarted",
    "Sink",
    "UnitDone",
    "finalize_metrics",
    "setup_metrics",
]
