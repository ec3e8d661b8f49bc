import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.telemetry.readings import END, START, run_into
from treadle.errors import RunError
from treadle.telemetry import PhaseStarted, RunEnded
from treadle.telemetry.events import Event
from treadle.telemetry.sinks import NullSink, fork
from treadle.telemetry.trace import TraceSink


class _Reader:
    """Reads the trace after each event."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lengths: list[int] = []

    def emit(self, event: Event) -> None:
        self.lengths.append(len(json.loads(self.path.read_text())))

    def close(self) -> None:
        pass


def _spans(path: Path) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(path.read_text()) if each["ph"] == "X"}


def test_the_array_is_whole_after_every_event(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trace.json"
    sink = TraceSink(path)
    assert json.loads(path.read_text()) == []
    reader = _Reader(path)
    run_into(fork(sink, reader))
    sink.close()
    sink.close()
    assert reader.lengths == sorted(reader.lengths)
    assert reader.lengths[-1] == len(json.loads(path.read_text())) > 8


def test_run_phases_units_and_stages_have_their_spans_and_lanes(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    run_into(TraceSink(path))
    spans = _spans(path)
    assert set(spans) == {"run corpus.partition", "phase main", "unit 00001-b", "read", "process", "write"}
    assert spans["run corpus.partition"]["dur"] == 2_000_000
    assert spans["run corpus.partition"]["args"]["outcome"] == "finished"
    assert spans["unit 00001-b"]["args"]["rows_in"] == 6
    records = json.loads(path.read_text())
    lanes = {each["tid"]: each["args"]["name"] for each in records if each["name"] == "thread_name"}
    shown = {name: lanes[each["tid"]] for name, each in spans.items()}
    worker = shown["unit 00001-b"]
    assert worker.endswith(f":{os.getpid()}")
    assert shown["read"] == f"{worker} read"
    assert shown["phase main"] == "run"
    assert len(set(lanes)) == len(set(lanes.values())) == 5
    assert [each["name"] for each in records if each["ph"] == "i"] == ["skipped 00000-a"]


def test_a_stage_lies_within_its_unit(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    run_into(TraceSink(path))
    spans = _spans(path)
    unit, read = spans["unit 00001-b"], spans["read"]
    assert unit["ts"] <= read["ts"]
    assert read["ts"] + read["dur"] <= unit["ts"] + unit["dur"] + 1


def test_a_phase_that_was_left_by_an_error_is_drawn_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    sink = TraceSink(path, clock=iter([10.0, 11.0, 13.0]).__next__)
    for event in (START, PhaseStarted("r1", "main", 1), RunEnded("r1", "failed", {}, 3.0, "it \udcff broke")):
        sink.emit(event)
    phase = _spans(path)["phase main"]
    assert (phase["ts"], phase["dur"], phase["args"]) == (11_000_000, 2_000_000, {"outcome": "failed"})


def test_an_old_trace_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("x" * 10_000)
    TraceSink(path).emit(END)
    assert "run " in _spans(path)


def test_what_cannot_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot write the trace"):
        TraceSink(tmp_path / "a\0b")
    sink = TraceSink(tmp_path / "trace.json")
    sink.close()
    with pytest.raises(RunError, match=r"trace\.json"):
        fork(NullSink(), sink).emit(END)
    if Path("/dev/full").exists():
        with pytest.raises(RunError, match="/dev/full"):
            TraceSink("/dev/full")
