"""Every metric that a run shows: name, kind, unit, what it says, its labels beside `step` and `run_type`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from treadle.telemetry.distribution import Distribution
from treadle.telemetry.events import MetricsSnapshot, Outcome, RunStarted

ROWS = {"rows_in": "in", "rows_out": "out", "filtered": "filtered", "rejected": "rejected"}
Value = float | Distribution
Sample = tuple[tuple[str, ...], Value]
"""The values of the own labels of a metric, and the number."""


COMMON_LABELS = ("step", "run_type")
"""The labels that every metric has, before its own."""

ENDED = "treadle_run_ended"
SAMPLED = "treadle_run_sampled_timestamp_seconds"
OUTCOMES: tuple[Outcome, ...] = ("finished", "failed", "cancelled")


@dataclass(frozen=True)
class Reading:
    """What is known of a run at one moment; `sampled` is when `metrics` were measured, seconds since 1970."""

    started: RunStarted
    metrics: MetricsSnapshot
    sampled: float
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Metric:
    """One metric. `samples` takes it from a reading; `unit` is what it counts or is measured in, in words."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    help: str
    samples: Callable[[Reading], Iterator[Sample]]
    labels: tuple[str, ...] = ()


def _one(take: Callable[[MetricsSnapshot], Value]) -> Callable[[Reading], Iterator[Sample]]:
    return lambda reading: iter([((), take(reading.metrics))])


def _each(
    take: Callable[[MetricsSnapshot], Mapping[str, Value]],
) -> Callable[[Reading], Iterator[Sample]]:
    return lambda reading: (((name,), value) for name, value in take(reading.metrics).items())


def _rows(metrics: MetricsSnapshot) -> Mapping[str, Value]:
    return {shown: metrics.counters.get(name, 0) for name, shown in ROWS.items()}


def _info(reading: Reading) -> Iterator[Sample]:
    yield (reading.started.run_id, str(reading.started.attempt)), 1


def _sampled(reading: Reading) -> Iterator[Sample]:
    yield (), reading.sampled


def _ended(reading: Reading) -> Iterator[Sample]:
    return (((each,), int(each == reading.outcome)) for each in OUTCOMES)


CATALOGUE: tuple[Metric, ...] = (
    Metric(
        "treadle_run_info",
        "gauge",
        "1",
        "Always 1: which run it is, and its attempt",
        _info,
        ("run_id", "attempt"),
    ),
    Metric(
        "treadle_run_rows_total",
        "counter",
        "rows",
        "Rows by what became of them: in, out, filtered, rejected",
        _each(_rows),
        ("outcome",),
    ),
    Metric(
        "treadle_run_rejects_total",
        "counter",
        "rows",
        "Rejected rows by kind",
        _each(lambda metrics: metrics.totals.rejects),
        ("kind",),
    ),
    Metric(
        "treadle_run_read_bytes_total",
        "counter",
        "bytes",
        "Size of the units that were read",
        _one(lambda metrics: metrics.counters.get("bytes_read", 0)),
    ),
    Metric(
        "treadle_run_written_bytes_total",
        "counter",
        "bytes",
        "Size of the files that were written",
        _one(lambda metrics: metrics.counters.get("bytes_written", 0)),
    ),
    Metric(
        "treadle_run_units_planned",
        "gauge",
        "units",
        "Units of the phases that have begun",
        _one(lambda metrics: metrics.units_planned),
    ),
    Metric(
        "treadle_run_units_done_total",
        "counter",
        "units",
        "Units that were worked on",
        _one(lambda metrics: metrics.units_done),
    ),
    Metric(
        "treadle_run_units_skipped_total",
        "counter",
        "units",
        "Units that an earlier run had done",
        _one(lambda metrics: metrics.units_skipped),
    ),
    Metric(
        "treadle_run_progress_ratio",
        "gauge",
        "0 to 1",
        "The part of the planned units that is settled, by their size where it is known",
        _one(lambda metrics: metrics.progress),
    ),
    Metric(
        "treadle_run_workers",
        "gauge",
        "workers",
        "Units that are worked on at once, at most",
        _one(lambda metrics: metrics.workers),
    ),
    Metric(
        "treadle_run_queue_items",
        "gauge",
        "batches",
        "Batches in a queue when one was added last",
        _each(lambda metrics: metrics.queues),
        ("queue",),
    ),
    Metric(
        "treadle_run_processes",
        "gauge",
        "processes",
        "The process of the run and its children",
        _one(lambda metrics: metrics.processes),
    ),
    Metric(
        "treadle_run_resident_memory_bytes",
        "gauge",
        "bytes",
        "Memory of the process and its children",
        _one(lambda metrics: metrics.rss_bytes),
    ),
    Metric(
        "treadle_run_cpu_seconds_total",
        "counter",
        "seconds",
        "CPU time of the process and its children",
        _one(lambda metrics: metrics.cpu_seconds),
    ),
    Metric(
        "treadle_run_last_progress_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "When something was counted last",
        _one(lambda metrics: metrics.last_progress),
    ),
    Metric(
        "treadle_run_unit_seconds",
        "histogram",
        "seconds",
        "How long a unit took",
        _one(lambda metrics: metrics.unit_seconds),
    ),
    Metric(
        "treadle_run_batch_rows",
        "histogram",
        "rows",
        "How many rows a batch had",
        _one(lambda metrics: metrics.totals.batch_rows),
    ),
    Metric(
        "treadle_run_stage_seconds",
        "histogram",
        "seconds",
        "How long a stage worked on one batch",
        _each(lambda metrics: metrics.totals.stages),
        ("stage",),
    ),
    Metric(SAMPLED, "gauge", "seconds since 1970", "When the numbers were measured", _sampled),
    Metric(ENDED, "gauge", "1", "1 for the outcome that the run ended with, else 0", _ended, ("outcome",)),
)
