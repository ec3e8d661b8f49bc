"""Events of a small run, as sinks get them."""

from treadle.telemetry import (
    Event,
    MetricsFinalized,
    PhaseEnded,
    PhaseStarted,
    RecordingSink,
    RunEnded,
    RunStarted,
    Sink,
    UnitDone,
    UnitSkipped,
    finalize_metrics,
    fork,
    setup_metrics,
)

START = RunStarted("r1", "corpus.partition", "partition")
END = RunEnded("r1", "finished", {"rows_in": 10}, 2.0)


def run_into(sink: Sink, *, interval: float = 60.0) -> list[Event]:
    """A run of two units, one of them done before: ten rows in, seven out; its events, after all of them."""
    kept = RecordingSink()
    into = fork(sink, kept)
    into.emit(START)
    metrics = setup_metrics(into, interval)
    both = fork(into, metrics)
    both.emit(PhaseStarted("r1", "main", 2, bytes=400, workers=3))
    both.emit(UnitSkipped("r1", "00000-a", {"rows_in": 4, "rows_out": 4}, bytes=100))
    meter = metrics.unit_meter("00001-b", spans=True)
    for stage in ("read", "process", "write"):
        with meter.stage(stage):
            meter.queue("process", 1)
    meter.batch(6)
    meter.add_all({"rows_in": 6, "rows_out": 3, "filtered": 1, "rejected": 2, "bytes_read": 300})
    meter.reject("not-json", 2)
    both.emit(UnitDone("r1", "00001-b", {"rows_in": 6}, 0.3, bytes=300, report=meter.report()))
    both.emit(PhaseEnded("r1", "main", 1.0))
    finalize_metrics(metrics, "finished")
    assert isinstance(kept.events[-1], MetricsFinalized)
    into.emit(END)
    return kept.events
