from __future__ import annotations

import json
import pickle
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import RunError
from treadle.telemetry import (
    Distribution,
    Event,
    LogSink,
    MetricsDelta,
    NullSink,
    PhaseStarted,
    RecordingSink,
    RunMetrics,
    UnitDone,
    UnitMeter,
    UnitReport,
    UnitSkipped,
    finalize_metrics,
    fork,
    setup_metrics,
)
from treadle.telemetry.spans import SpanLine

BOUNDS = (1.0, 2.0, 4.0)
values = st.lists(st.integers(0, 9), max_size=20)


def measured(unit: str = "u", *, counted: bool = True, spans: bool = False) -> UnitReport:
    """The report of a unit of ten rows, one of them rejected."""
    meter = UnitMeter(unit, counted=counted, spans=spans)
    with meter.stage("read"):
        threading.Event().wait(0.001)
    meter.batch(10)
    meter.add_all({"rows_in": 10, "rows_out": 9, "rejected": 1})
    meter.reject("not-utf8")
    meter.queue("process", 3)
    return meter.report()


@given(values, values)
def test_distributions_of_parts_add_up_to_that_of_all(some: list[int], others: list[int]) -> None:
    whole = Distribution.of(BOUNDS, [*some, *others])
    assert Distribution.of(BOUNDS, some) + Distribution.of(BOUNDS, others) == whole
    assert whole.count == len(some) + len(others)


def test_a_value_on_a_bound_belongs_below_it() -> None:
    """As `le` of Prometheus has it."""
    assert Distribution.of(BOUNDS, [1, 2, 4, 5]).counts == (1, 1, 1, 1)


def test_distributions_of_other_buckets_do_not_add() -> None:
    with pytest.raises(ValueError, match="other buckets"):
        Distribution.of(BOUNDS) + Distribution.of((1.0,))


def test_reports_of_workers_travel_and_add_up() -> None:
    report = pickle.loads(pickle.dumps(measured()))
    both = report.delta + report.delta + MetricsDelta(counters={"terms": 4})
    assert both.counters == {"rejected": 2, "rows_in": 20, "rows_out": 18, "terms": 4}
    assert both.rejects == {"not-utf8": 2}
    assert both.batch_rows.count == 2
    assert both.queues["process"].total == 6
    assert both.stage_seconds["read"] >= 0.002


def test_a_phase_that_only_looks_counts_no_rows() -> None:
    delta = measured(counted=False).delta
    assert delta.counters == delta.rejects == {}
    assert delta.stage_seconds["read"] > 0


def test_spans_stay_few_and_keep_the_working_time() -> None:
    line = SpanLine(kept=4)
    for at in range(1000):
        line.add(at, at + 0.5)
    spans = list(line.spans("read"))
    assert len(spans) <= 4
    assert spans[0].start == 0
    assert spans[-1].end == 999.5
    assert sum(each.busy for each in spans) == 500
    assert all(one.end <= two.start for one, two in pairwise(spans))


def test_spans_are_kept_only_when_asked_for() -> None:
    assert measured().spans == ()
    assert [each.stage for each in measured(spans=True).spans] == ["read"]


def test_a_unit_of_this_process_counts_live_and_once() -> None:
    metrics = RunMetrics(NullSink(), 3600)
    meter = metrics.unit_meter("u")
    meter.add("rows_in", 3)
    meter.queue("write", 2)
    live = metrics.snapshot()
    assert live.counters == {"rows_in": 3}
    assert live.queues == {"write": 2}
    metrics.emit(UnitDone("r", "u", {"rows_in": 3}, 1.5, report=meter.report()))
    done = metrics.snapshot()
    assert done.counters == {"rows_in": 3}
    assert done.queues == {}
    assert done.unit_seconds.total == 1.5


def test_units_of_other_processes_and_of_earlier_runs_are_counted() -> None:
    metrics = RunMetrics(NullSink(), 3600)
    metrics.emit(PhaseStarted("r", "main", units=4, bytes=100, workers=2))
    metrics.emit(UnitSkipped("r", "a", {"rows_in": 7}, bytes=50))
    metrics.emit(UnitDone("r", "b", {"rows_in": 10}, 0.5, bytes=25, report=measured("b")))
    now = metrics.snapshot()
    assert now.counters["rows_in"] == 17
    assert (now.units_planned, now.units_done, now.units_skipped, now.workers) == (4, 1, 1, 2)
    assert now.progress == 0.75


def test_progress_goes_by_units_where_their_size_is_unknown() -> None:
    metrics = RunMetrics(NullSink(), 3600)
    assert metrics.snapshot().progress == 0
    metrics.emit(PhaseStarted("r", "main", units=2))
    metrics.emit(UnitDone("r", "a", {}, 0.5))
    assert metrics.snapshot().progress == 0.5


def test_the_last_progress_is_when_something_was_counted() -> None:
    """A stalled run is one whose clock goes on while nothing is counted."""
    now = iter(range(100))
    metrics = RunMetrics(NullSink(), 3600, clock=lambda: float(next(now)))
    metrics.add("rows_in")
    moved = metrics.snapshot().last_progress
    assert metrics.snapshot().last_progress == moved
    metrics.add("rows_in")
    assert metrics.snapshot().last_progress > moved


def test_a_log_has_the_stage_seconds_of_a_unit_but_not_all_metrics_of_a_sample(tmp_path: Path) -> None:
    log = LogSink(tmp_path / "log.jsonl")
    metrics = setup_metrics(log, 3600)
    log.emit(UnitDone("r", "u", {"rows_in": 10}, 0.5, report=measured()))
    finalize_metrics(metrics, "finished")
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert set(lines[0]) == {"event", "time", "rss_bytes", "cpu_seconds", "processes"}
    assert lines[1]["stage_seconds"]["read"] > 0
    assert "report" not in lines[1]


class Full(RecordingSink):
    def emit(self, event: Event) -> None:
        raise RunError("full")


def test_a_fork_gives_to_all_though_one_fails() -> None:
    kept = RecordingSink()
    with pytest.raises(RunError, match="full"):
        fork(Full(), kept).emit(UnitDone("r", "u", {}, 0.5))
    assert len(kept.events) == 1
