"""The metrics of a run in the form of Prometheus: those of the catalogue, numbers of the last sample.

Nothing of this is on the path of the rows. Imported only where the extra `metrics` is installed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from treadle.telemetry.catalogue import CATALOGUE, COMMON_LABELS, Metric, Reading
from treadle.telemetry.distribution import Distribution
from treadle.telemetry.events import Event, MetricsFinalized, ResourcesSampled, RunStarted


class Shown(Collector):
    """What is shown: the last sample of a run, none before the first."""

    def __init__(self) -> None:
        self.started = RunStarted("", "", "")
        self._reading: Reading | None = None
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def empty(self) -> bool:
        """Whether there was no sample yet."""
        return self._reading is None

    def take(self, event: Event) -> None:
        """Keep what the event says of the numbers; after the end of the metrics nothing changes."""
        if isinstance(event, RunStarted):
            self.started = event
        elif self._reading is not None and self._reading.outcome is not None:
            return
        elif isinstance(event, ResourcesSampled) and event.metrics is not None:
            self._reading = Reading(self.started, event.metrics, time.time())
        elif isinstance(event, MetricsFinalized):
            self._reading = Reading(self.started, event.metrics, time.time(), event.outcome)

    def collect(self) -> Iterator[Family]:
        """The families, for the client of Prometheus."""
        reading = self._reading
        return iter(()) if reading is None else (_family(metric, reading) for metric in CATALOGUE)


def _family(metric: Metric, reading: Reading) -> Family:
    common = (reading.started.step_id, reading.started.run_type)
    names = (*COMMON_LABELS, *metric.labels)
    if metric.kind == "histogram":
        return _histogram(metric, reading, common, names)
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=names)
    for labels, value in metric.samples(reading):
        family.add_metric((*common, *labels), cast("float", value))
    return family


def _histogram(
    metric: Metric, reading: Reading, common: tuple[str, ...], names: tuple[str, ...]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(metric.name, metric.help, labels=names)
    for labels, value in metric.samples(reading):
        distribution = cast("Distribution", value)
        family.add_metric((*common, *labels), _buckets(distribution), distribution.total)
    return family


def _buckets(value: Distribution) -> list[tuple[str, float]]:
    """Each bound with how many values were not above it."""
    names = [*map(repr, value.bounds), "+Inf"]
    total, buckets = 0, []
    for name, count in zip(names, value.counts, strict=True):
        total += count
        buckets.append((name, float(total)))
    return buckets
