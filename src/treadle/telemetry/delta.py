"""What a part of a run added to its metrics: plain numbers that can be sent, and that add with `+`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from treadle.telemetry.distribution import BATCH_ROWS, Distribution

V = TypeVar("V")


def _no_batches() -> Distribution:
    return Distribution.of(BATCH_ROWS)


@dataclass(frozen=True)
class MetricsDelta:
    """Numbers of one unit, one worker or one run, whichever they were taken from.

    `counters` are sums by name, `rejects` the rejected rows by kind; `stages` has, for each stage, how long
    it worked on one batch (seconds), `batch_rows` how many rows a batch had, and `queues` how many items were
    in each queue when one was added.
    """

    counters: Mapping[str, int] = field(default_factory=dict)
    rejects: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, Distribution] = field(default_factory=dict)
    batch_rows: Distribution = field(default_factory=_no_batches)
    queues: Mapping[str, Distribution] = field(default_factory=dict)

    @property
    def stage_seconds(self) -> dict[str, float]:
        """Working time by stage, summed over threads, names sorted."""
        return {name: each.total for name, each in sorted(self.stages.items())}

    def __add__(self, other: MetricsDelta) -> MetricsDelta:
        return MetricsDelta(
            _added(self.counters, other.counters, operator.add),
            _added(self.rejects, other.rejects, operator.add),
            _added(self.stages, other.stages, operator.add),
            self.batch_rows + other.batch_rows,
            _added(self.queues, other.queues, operator.add),
        )


def _added(mine: Mapping[str, V], its: Mapping[str, V], add: Callable[[V, V], V]) -> dict[str, V]:
    sums = dict(mine)
    for name, value in its.items():
        sums[name] = add(sums[name], value) if name in sums else value
    return dict(sorted(sums.items()))
