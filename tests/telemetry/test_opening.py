import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.telemetry.readings import END, START, run_into
from treadle.errors import ArgumentError, MissingExtraError, RunError
from treadle.telemetry import PrometheusSpec, RecordingSink, check_prometheus, open_sinks


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "pul"}, "mode: expected one of pull, push, textfile, got 'pul'"),
        ({"mode": "push"}, "url: mode push needs it"),
        ({"mode": "push", "url": "localhost:9091"}, "url: expected that of a push gateway"),
        ({"mode": "push", "url": "http://:9091"}, "url: expected"),
        ({"mode": "push", "url": "http://localhost:port"}, "url: expected"),
        ({"mode": "pull", "url": "http://localhost:9091"}, "no other has it; mode pull"),
        ({"mode": "textfile"}, "path: mode textfile needs it"),
        ({"mode": "textfile", "path": ""}, "path: expected a local file"),
        ({"mode": "textfile", "path": "s3://b/x.prom"}, "path: expected a local file, got 's3://b/x.prom'"),
        ({"mode": "pull", "path": "x.prom"}, "no other has it"),
        ({"mode": "pull", "address": "9108"}, "address: expected HOST:PORT, got '9108'"),
        ({"mode": "pull", "address": ":9108"}, "address: expected HOST:PORT"),
        ({"mode": "pull", "address": "localhost:65536"}, "address: expected HOST:PORT"),
        ({"mode": "pull", "interval": 0}, "interval: expected more than 0 seconds"),
        ({"mode": "pull", "interval": math.nan}, "interval: expected more than 0 seconds"),
        ({"mode": "pull", "timeout": math.inf}, "timeout: expected more than 0 seconds"),
        ({"mode": "pull", "job": ""}, "job: expected a name"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        PrometheusSpec(**settings)
    assert message in str(caught.value)


def test_without_the_client_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    check_prometheus(PrometheusSpec("pull"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"treadle\[metrics\]"):
        check_prometheus(PrometheusSpec("pull"))


def test_nothing_asked_for_is_a_sink_that_takes_everything() -> None:
    sink = open_sinks()
    run_into(sink)
    sink.close()
    sink.close()
    assert sink.notes() == ()


def test_every_sink_gets_every_event_and_only_the_own_are_closed(tmp_path: Path) -> None:
    given = RecordingSink()
    sink = open_sinks(given=given, log=str(tmp_path / "log.jsonl"), trace=str(tmp_path / "trace.json"))
    sink.emit(START)
    sink.emit(END)
    sink.close()
    assert given.events == [START, END]
    assert not given.closed
    logged = [json.loads(line)["event"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert logged == ["RunStarted", "RunEnded"]
    assert json.loads((tmp_path / "trace.json").read_text())[-1]["name"] == "run corpus.partition"
    with pytest.raises(RunError, match=r"log\.jsonl"):
        sink.emit(END)


def test_one_sink_that_cannot_be_opened_leaves_none_open(tmp_path: Path, open_files: Any) -> None:
    (tmp_path / "file").touch()
    before = open_files()
    with pytest.raises(RunError, match=r"trace\.json"):
        open_sinks(log=str(tmp_path / "log.jsonl"), trace=str(tmp_path / "file" / "trace.json"))
    assert open_files() == before


@pytest.fixture
def open_files() -> Any:
    """The files of this process that are open, by their paths."""
    return lambda: sorted(
        str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()
    )
