"""What a run reports. An event is a frozen record; a sink decides what to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["finished", "failed", "cancelled"]


@dataclass(frozen=True)
class RunStarted:
    """A run began, before anything was read. `params` is the overlay it was given."""

    run_id: str
    step_id: str
    run_type: str
    user: str = ""
    integration: str = ""
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class UnitDone:
    """All rows of one unit of work were read, transformed and written."""

    run_id: str
    unit: str
    counters: Mapping[str, int]
    seconds: float


@dataclass(frozen=True)
class ResourcesSampled:
    """What the process and its children use at one moment; `cpu_seconds` counts from the sampler's making."""

    rss_bytes: int
    cpu_seconds: float
    processes: int


@dataclass(frozen=True)
class MetricsSnapshot:
    """The metrics of a run at one moment.

    `stage_seconds` sums wall time by stage over all threads; `peak_rss_bytes` and `cpu_seconds` are those of
    the process and its children.
    """

    counters: Mapping[str, int]
    stage_seconds: Mapping[str, float]
    peak_rss_bytes: int
    cpu_seconds: float


@dataclass(frozen=True)
class MetricsFinalized:
    """The last word of the metrics of a run."""

    outcome: Outcome
    metrics: MetricsSnapshot


@dataclass(frozen=True)
class RunEnded:
    """A run is over. `error` is the message of what made it fail."""

    run_id: str
    outcome: Outcome
    counters: Mapping[str, int]
    seconds: float
    error: str | None = None


Event = RunStarted | UnitDone | ResourcesSampled | MetricsFinalized | RunEnded
