"""Measures one unit of work where it is worked on, by all of its threads; the result is sent as a report."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from treadle.telemetry.delta import MetricsDelta
from treadle.telemetry.distribution import BATCH_ROWS, QUEUE_ITEMS, STAGE_SECONDS, Tally
from treadle.telemetry.spans import SpanLine, StageSpan


@dataclass(frozen=True)
class UnitReport:
    """What was measured while one unit was worked on, in whatever process.

    `worker` is "host:pid"; `started` counts seconds since 1970, UTC, by the clock of that host. `spans` are
    empty unless they were asked for.
    """

    unit: str
    phase: str
    worker: str
    started: float
    seconds: float
    delta: MetricsDelta = field(default_factory=MetricsDelta)
    spans: tuple[StageSpan, ...] = ()


class Meter:
    """Counters, stage times and distributions. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: Counter[str] = Counter()
        self._rejects: Counter[str] = Counter()
        self._stages: dict[str, Tally] = {}
        self._batch_rows = Tally(BATCH_ROWS)
        self._queues: dict[str, Tally] = {}

    def add(self, counter: str, n: int = 1) -> None:
        """Add `n` to a counter, which begins at 0."""
        with self._lock:
            self._counters[counter] += n

    def add_all(self, counts: Mapping[str, int]) -> None:
        """Add to several counters at once, so that nobody sees some of them only."""
        with self._lock:
            for name, n in counts.items():
                self._counters[name] += n

    def reject(self, kind: str, n: int = 1) -> None:
        """Count rejected rows by their kind, a short stable name. Not added to the counter `rejected`."""
        with self._lock:
            self._rejects[kind] += n

    def batch(self, rows: int) -> None:
        """Count one batch of that many rows."""
        with self._lock:
            self._batch_rows.observe(rows)

    def queue(self, name: str, depth: int) -> None:
        """Note how many items are in a queue now that one was added."""
        with self._lock:
            _tally(self._queues, name, QUEUE_ITEMS).observe(depth)

    def stage(self, name: str) -> StageTimer:
        """A block whose wall time counts as one piece of work of the stage, also when it fails."""
        return StageTimer(self, name)

    def observe_stage(self, name: str, began: float, ended: float) -> None:
        """Count a piece of work of the stage; the times are those of `time.perf_counter`."""
        with self._lock:
            _tally(self._stages, name, STAGE_SECONDS).observe(ended - began)

    def delta(self) -> MetricsDelta:
        """Everything so far."""
        with self._lock:
            return MetricsDelta(
                dict(sorted(self._counters.items())),
                dict(sorted(self._rejects.items())),
                {name: each.distribution() for name, each in sorted(self._stages.items())},
                self._batch_rows.distribution(),
                {name: each.distribution() for name, each in sorted(self._queues.items())},
            )


class StageTimer:
    """The block that `Meter.stage` returns; used once per batch and stage, so it is no generator."""

    __slots__ = ("_began", "_meter", "_name")

    def __init__(self, meter: Meter, name: str) -> None:
        self._meter = meter
        self._name = name

    def __enter__(self) -> Self:
        self._began = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._meter.observe_stage(self._name, self._began, time.perf_counter())


class UnitMeter(Meter):
    """Measures one unit, from its making to `report`.

    `counted` False: the rows of this phase are no rows of the account, so counters and rejects are dropped.
    `spans`: keep when each stage worked, for a trace.
    """

    def __init__(self, unit: str, phase: str = "main", *, counted: bool = True, spans: bool = False) -> None:
        super().__init__()
        self.unit = unit
        self.phase = phase
        self._counted = counted
        self._lines: dict[str, SpanLine] | None = {} if spans else None
        self._depths: dict[str, int] = {}
        self._started = time.time()
        self._began = time.perf_counter()

    def add_all(self, counts: Mapping[str, int]) -> None:
        """See `Meter.add_all`."""
        if self._counted:
            super().add_all(counts)

    def add(self, counter: str, n: int = 1) -> None:
        """See `Meter.add`."""
        if self._counted:
            super().add(counter, n)

    def reject(self, kind: str, n: int = 1) -> None:
        """See `Meter.reject`."""
        if self._counted:
            super().reject(kind, n)

    def queue(self, name: str, depth: int) -> None:
        """See `Meter.queue`."""
        self._depths[name] = depth
        super().queue(name, depth)

    @property
    def depths(self) -> Mapping[str, int]:
        """How many items were in each queue when one was added last."""
        return dict(self._depths)

    def observe_stage(self, name: str, began: float, ended: float) -> None:
        """See `Meter.observe_stage`."""
        super().observe_stage(name, began, ended)
        if self._lines is not None:
            with self._lock:
                self._lines.setdefault(name, SpanLine()).add(began - self._began, ended - self._began)

    def report(self) -> UnitReport:
        """What was measured so far; can be sent to another process."""
        seconds = time.perf_counter() - self._began
        return UnitReport(
            self.unit, self.phase, _worker(), self._started, seconds, self.delta(), self._spans()
        )

    def _spans(self) -> tuple[StageSpan, ...]:
        with self._lock:
            lines = sorted((self._lines or {}).items())
            return tuple(span for name, line in lines for span in line.spans(name))


def _worker() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _tally(tallies: dict[str, Tally], name: str, bounds: tuple[float, ...]) -> Tally:
    if name not in tallies:
        tallies[name] = Tally(bounds)
    return tallies[name]
