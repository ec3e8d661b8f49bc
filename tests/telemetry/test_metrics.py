from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import RunError
from treadle.telemetry import (
    Event,
    MetricsFinalized,
    NullSink,
    Outcome,
    RecordingSink,
    ResourcesSampled,
    RunMetrics,
    finalize_metrics,
    setup_metrics,
)

amounts = st.lists(
    st.tuples(st.sampled_from(["rows_in", "rows_out", "bytes"]), st.integers(0, 10**6)), max_size=40
)


def in_threads(count: int, act: Callable[[], object]) -> None:
    threads = [threading.Thread(target=act) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def unsampled() -> RunMetrics:
    """Metrics whose sampler was never started, so that there is no thread to stop."""
    return RunMetrics(NullSink(), 3600)


@settings(max_examples=30)
@given(amounts)
def test_counts_of_all_threads_add_up(amounts: list[tuple[str, int]]) -> None:
    """Reader, processor and writer count at the same time; a lost count is a row lost from the account."""
    metrics = unsampled()

    def add_all() -> None:
        for name, n in amounts:
            metrics.add(name, n)

    in_threads(3, add_all)
    expected: Counter[str] = Counter()
    for name, n in amounts:
        expected[name] += 3 * n
    assert metrics.snapshot().counters == dict(sorted(expected.items()))


def test_the_time_of_a_stage_adds_up_also_when_it_fails() -> None:
    metrics = unsampled()
    with metrics.stage("read"):
        pass
    once = metrics.snapshot().stage_seconds["read"]
    with pytest.raises(ZeroDivisionError), metrics.stage("read"):
        threading.Event().wait(0.02)
        raise ZeroDivisionError
    assert metrics.snapshot().stage_seconds["read"] >= once + 0.02


@pytest.mark.parametrize(
    ("first", "second"), [("finished", "failed"), ("failed", "finished"), ("cancelled", "failed")]
)
def test_the_first_outcome_stands(first: Outcome, second: Outcome) -> None:
    """A failure while cleaning up must not turn a finished run into a failed one, or the other way round."""
    sink = RecordingSink()
    metrics = setup_metrics(sink, 3600)
    metrics.add("rows_in", 2)
    final = finalize_metrics(metrics, first)
    metrics.add("rows_in", 5)
    assert finalize_metrics(metrics, second) == final == metrics.snapshot()
    assert metrics.outcome == first
    assert final.counters == {"rows_in": 2}
    assert final.peak_rss_bytes > 1_000_000
    assert sink.events[-1] == MetricsFinalized(first, final)
    assert [type(each) for each in sink.events].count(MetricsFinalized) == 1


def test_no_sampler_outlives_its_run() -> None:
    def samplers() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "treadle-sampler"]

    metrics = setup_metrics(RecordingSink(), 0.01)
    assert samplers() == ["treadle-sampler"]
    in_threads(4, lambda: finalize_metrics(metrics, "finished"))
    assert samplers() == []


class BrokenSink(RecordingSink):
    """Takes the first `good` events and fails at each later one."""

    def __init__(self, good: int) -> None:
        super().__init__()
        self._good = good

    def emit(self, event: Event) -> None:
        if len(self.events) >= self._good:
            raise RunError(f"cannot take {type(event).__name__}")
        super().emit(event)


@pytest.mark.parametrize(
    ("good", "message"), [(1, "cannot take ResourcesSampled"), (2, "cannot take MetricsFinalized")]
)
def test_a_sink_that_fails_is_told_and_the_metrics_are_settled_all_the_same(good: int, message: str) -> None:
    """The sampler is stopped and the outcome stands whatever the sink does; the first error is the one
    that is raised.
    """
    metrics = setup_metrics(BrokenSink(good), 3600)
    with pytest.raises(RunError, match=message):
        finalize_metrics(metrics, "failed")
    assert metrics.outcome == "failed"
    assert finalize_metrics(metrics, "finished") == metrics.snapshot()
    assert metrics.outcome == "failed"
    assert all(thread.name != "treadle-sampler" for thread in threading.enumerate())


def test_samples_reach_the_sink() -> None:
    sink = RecordingSink()
    finalize_metrics(setup_metrics(sink, 3600), "finished")
    assert [type(each) for each in sink.events] == [ResourcesSampled, ResourcesSampled, MetricsFinalized]
