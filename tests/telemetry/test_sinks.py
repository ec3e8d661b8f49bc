from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from treadle.errors import RunError
from treadle.telemetry import LogSink, NullSink, RecordingSink, RunEnded, RunStarted, Sink, UnitDone

START = RunStarted("r1", "corpus.partition", "partition", params={"corpus": Path("/data"), "limit": None})
UNIT = UnitDone("r1", "00000-a", {"rows_in": 3}, 0.5)
END = RunEnded("r1", "failed", {"rows_in": 3}, 1.25, "né\nsecond line")


def test_a_log_has_one_object_a_line_for_each_event(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "run.jsonl"
    sink = LogSink(path, clock=lambda: 12.5)
    for event in (START, UNIT, END):
        sink.emit(event)
    sink.close()
    sink.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == {
        "event": "RunStarted",
        "time": 12.5,
        "run_id": "r1",
        "step_id": "corpus.partition",
        "run_type": "partition",
        "user": "",
        "integration": "",
        "params": {"corpus": "/data", "limit": None},
        "attempt": 1,
        "labels": {},
    }
    assert [line["event"] for line in lines] == ["RunStarted", "UnitDone", "RunEnded"]
    assert lines[2]["error"] == "né\nsecond line"


def test_a_line_is_on_disk_before_emit_returns(tmp_path: Path) -> None:
    """The log of a killed run must tell what it did until then."""
    sink = LogSink(tmp_path / "run.jsonl")
    sink.emit(UNIT)
    assert json.loads((tmp_path / "run.jsonl").read_text())["unit"] == "00000-a"
    sink.close()


def test_a_second_run_is_appended(tmp_path: Path) -> None:
    for _ in range(2):
        sink = LogSink(tmp_path / "run.jsonl")
        sink.emit(UNIT)
        sink.close()
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 2


def test_secrets_are_never_written(tmp_path: Path) -> None:
    """Logs are copied and shared by people who do not know what a param held."""
    params = {
        "hf_TOKEN": "hush1",
        "db": {"password": "hush2", "host": "localhost", "list": [{"client_secret": "hush3"}]},
        "api_key": ["hush4"],
        "corpus": "shown",
    }
    sink = LogSink(tmp_path / "run.jsonl")
    sink.emit(RunStarted("r1", "a", "partition", params=params))
    sink.close()
    text = (tmp_path / "run.jsonl").read_text()
    assert "hush" not in text
    assert json.loads(text)["params"] == {
        "hf_TOKEN": "[redacted]",
        "db": {"password": "[redacted]", "host": "localhost", "list": [{"client_secret": "[redacted]"}]},
        "api_key": "[redacted]",
        "corpus": "shown",
    }


def test_counts_of_tokens_are_no_secret(tmp_path: Path) -> None:
    """Only what a person passed in can be a secret; a counter may be named after tokens or keys."""
    sink = LogSink(tmp_path / "run.jsonl")
    sink.emit(UnitDone("r1", "u", {"prompt_tokens": 7, "keys": 3}, 0.5))
    sink.close()
    assert json.loads((tmp_path / "run.jsonl").read_text())["counters"] == {"prompt_tokens": 7, "keys": 3}


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    sink = LogSink(tmp_path / "run.jsonl")

    def emit_many() -> None:
        for _ in range(200):
            sink.emit(END)

    threads = [threading.Thread(target=emit_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sink.close()
    assert {json.loads(line)["event"] for line in (tmp_path / "run.jsonl").read_text().splitlines()} == {
        "RunEnded"
    }


def test_a_log_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write the log .*: .*directory"):
        LogSink(tmp_path)
    full = LogSink("/dev/full")
    with pytest.raises(RunError, match=r"cannot write the log /dev/full: .*No space left"):
        full.emit(UNIT)
    full.close()
    closed = LogSink(tmp_path / "run.jsonl")
    closed.close()
    with pytest.raises(RunError, match=r"cannot write the log .*/run.jsonl: .*closed"):
        closed.emit(UNIT)


def test_the_other_sinks_are_sinks() -> None:
    recording = RecordingSink()
    sinks: list[Sink] = [NullSink(), recording]
    for sink in sinks:
        sink.emit(START)
        sink.emit(END)
        sink.close()
    assert recording.events == [START, END]
    assert recording.closed


def test_a_param_that_is_not_utf8_is_logged(tmp_path: Path) -> None:
    """An argument of the command line can be any bytes; Python gives those that are no text as surrogates."""
    sink = LogSink(tmp_path / "log.jsonl")
    sink.emit(RunStarted("r1", "s", "partition", params={"path": "\udcff"}))
    sink.close()
    assert json.loads((tmp_path / "log.jsonl").read_bytes())["params"] == {"path": "\udcff"}


def test_a_log_path_with_a_nul_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write the log .*null byte"):
        LogSink(f"{tmp_path}/a\0b")
