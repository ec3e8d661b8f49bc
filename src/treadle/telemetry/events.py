"""What a run reports. An event is a frozen record; a sink decides what to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from treadle.telemetry.delta import MetricsDelta
from treadle.telemetry.distribution import UNIT_SECONDS, Distribution
from treadle.telemetry.meter import UnitReport

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
    attempt: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MetricsEndpoint:
    """Prometheus may ask for the metrics of the run at `url`, until the run is over."""

    url: str


@dataclass(frozen=True)
class MetricsUnsent:
    """Metrics could not be handed over, for the first time with this `reason`; the run goes on."""

    reason: str


@dataclass(frozen=True)
class PhaseStarted:
    """Some units are about to be worked on, by so many workers; `bytes` is their size in all.

    A run may have several phases, one after another.
    """

    run_id: str
    phase: str
    units: int
    bytes: int = 0
    workers: int = 1


@dataclass(frozen=True)
class PhaseEnded:
    """No unit of the phase is left."""

    run_id: str
    phase: str
    seconds: float


@dataclass(frozen=True)
class UnitDone:
    """All rows of one unit of work were read, transformed and written.

    `bytes` is the size of the unit, `report` what was measured where it was worked on.
    """

    run_id: str
    unit: str
    counters: Mapping[str, int]
    seconds: float
    phase: str = "main"
    bytes: int = 0
    report: UnitReport | None = None


@dataclass(frozen=True)
class UnitSkipped:
    """An earlier run finished the unit; its rows count in this one as well, but it took no time."""

    run_id: str
    unit: str
    counters: Mapping[str, int]
    phase: str = "main"
    bytes: int = 0


@dataclass(frozen=True)
class RowsAnswered:
    """How many rows a language model has answered in this run until now, in how many tokens.

    `engine_seconds` is what the engine worked on these rows.
    """

    run_id: str
    rows: int
    new_tokens: int
    engine_seconds: float
    phase: str = "main"


@dataclass(frozen=True)
class MetricsSnapshot:
    """The metrics of a run at one moment.

    `stage_seconds` sums wall time by stage over all threads; memory (bytes), `cpu_seconds` and `processes`
    are those of the process and its children. `totals` has all that was added up; `queues` the items in the
    queues of this process; `last_progress` is when something was counted last, in seconds since 1970, UTC.
    """

    counters: Mapping[str, int]
    stage_seconds: Mapping[str, float]
    peak_rss_bytes: int
    cpu_seconds: float
    rss_bytes: int = 0
    processes: int = 1
    workers: int = 1
    units_planned: int = 0
    units_done: int = 0
    units_skipped: int = 0
    bytes_planned: int = 0
    bytes_done: int = 0
    last_progress: float = 0.0
    unit_seconds: Distribution = field(default_factory=lambda: Distribution.of(UNIT_SECONDS))
    queues: Mapping[str, int] = field(default_factory=dict)
    totals: MetricsDelta = field(default_factory=MetricsDelta)

    @property
    def progress(self) -> float:
        """The part of the planned units that is settled, from 0 to 1: by bytes where these are known."""
        if self.bytes_planned:
            return min(1.0, self.bytes_done / self.bytes_planned)
        settled = self.units_done + self.units_skipped
        return min(1.0, settled / self.units_planned) if self.units_planned else 0.0


@dataclass(frozen=True)
class ResourcesSampled:
    """What the process and its children use at one moment; `cpu_seconds` counts from the sampler's making.

    `metrics` is all that was measured until then, when the sample was taken for a run.
    """

    rss_bytes: int
    cpu_seconds: float
    processes: int
    metrics: MetricsSnapshot | None = None


@dataclass(frozen=True)
class MetricsFinalized:
    """The last word of the metrics of a run."""

    outcome: Outcome
    metrics: MetricsSnapshot


@dataclass(frozen=True)
class RunEnded:
    """A run is over. `error` is the message of what made it fail; `notes` say what else went wrong.

    `account` is the path of the closing account, None when none was written.
    """

    run_id: str
    outcome: Outcome
    counters: Mapping[str, int]
    seconds: float
    error: str | None = None
    account: str | None = None
    notes: tuple[str, ...] = ()


Event = (
    RunStarted
    | MetricsEndpoint
    | MetricsUnsent
    | PhaseStarted
    | PhaseEnded
    | UnitDone
    | UnitSkipped
    | RowsAnswered
    | ResourcesSampled
    | MetricsFinalized
    | RunEnded
)
