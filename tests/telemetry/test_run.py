"""What a run that is started from a manifest tells."""

import json
import socket
from pathlib import Path

import pytest

from treadle.errors import RunError
from treadle.processing import RunContext, run_from_manifest
from treadle.telemetry import MetricsEndpoint, MetricsFinalized, RecordingSink, RunEnded, RunStarted

MANIFEST = """
drtml_version: 4
step_id: corpus.mapping
run: {type: mapping}
inputs: {registry: {backend: jsonl, path: terms.jsonl}}
mapping: {min_count: 2}
outputs: {mapping: {backend: jsonl, path: mapping}}
runtime: {metrics_enabled: true}
"""


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordingSink:
    """A sink for a run in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    terms = [{"term": "sea", "count": 1, "documents": 1}] * 8
    Path("terms.jsonl").write_text("".join(f"{json.dumps(term)}\n" for term in terms))
    return RecordingSink()


def _run(sink: RecordingSink, prometheus: str) -> None:
    Path("mapping.yaml").write_text(f"{MANIFEST}metrics: {{trace: trace.json, prometheus: {prometheus}}}\n")
    run_from_manifest("mapping.yaml", RunContext.create("corpus.mapping", "out"), sink=sink)


def test_a_gateway_that_is_not_there_is_a_note_at_the_end_of_a_run_that_succeeds(sink: RecordingSink) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    _run(sink, f'{{mode: push, url: "{url}"}}')
    end = sink.events[-1]
    assert isinstance(end, RunEnded)
    assert end.outcome == "finished"
    assert len(end.notes) == 1
    assert f"not sent to push gateway {url}" in end.notes[0]


def test_a_run_says_where_its_metrics_are_after_it_started(sink: RecordingSink) -> None:
    _run(sink, "{mode: pull}")
    assert isinstance(sink.events[0], RunStarted)
    assert isinstance(sink.events[1], MetricsEndpoint)
    assert isinstance(sink.events[-1], RunEnded)


def test_a_run_that_fails_is_finalised_once_and_shown_as_failed(sink: RecordingSink) -> None:
    Path("terms.jsonl").write_text("no json\n")
    with pytest.raises(RunError):
        _run(sink, '{mode: textfile, path: "${run.output}/run.prom"}')
    final = [each.outcome for each in sink.events if isinstance(each, MetricsFinalized)]
    assert final == ["failed"]
    shown = Path("out/run.prom").read_text().splitlines()
    labels = 'outcome="failed",run_type="mapping",step="corpus.mapping"'
    assert f"treadle_run_ended{{{labels}}} 1.0" in shown
    assert any(each["name"] == "phase fold" for each in json.loads(Path("out/trace.json").read_text()))
