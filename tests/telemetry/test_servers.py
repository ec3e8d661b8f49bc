"""The metrics of a run with a real Prometheus and a real push gateway."""

import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.telemetry.readings import run_into
from tests.telemetry.servers import binary, fetch, prometheus, push_gateway, query, wait_for
from treadle.telemetry import MetricsEndpoint, PrometheusSpec, RecordingSink, open_sinks

ROWS = "treadle_run_rows_total"


def _rows_seen_by(url: str, job: str) -> dict[str, float]:
    """Rows by outcome, once Prometheus has them."""
    found = wait_for(lambda: query(url, f'{ROWS}{{job="{job}"}}') or None, f"{ROWS} of {job}")
    assert {(labels["step"], labels["run_type"]) for labels, _ in found} == {
        ("corpus.partition", "partition")
    }
    return {labels["outcome"]: value for labels, value in found}


def test_prometheus_gets_the_numbers_by_pull_and_by_push(tmp_path: Path) -> None:
    given = RecordingSink()
    pulled = open_sinks(given=given, prometheus=PrometheusSpec("pull"))
    try:
        run_into(pulled)
        endpoint = given.events[1]
        assert isinstance(endpoint, MetricsEndpoint)
        with push_gateway(tmp_path) as gateway:
            pushed = open_sinks(prometheus=PrometheusSpec("push", url=gateway, job="corpus"))
            run_into(pushed)
            pushed.close()
            assert pushed.notes() == ()
            targets = {"live": urlsplit(endpoint.url).netloc, "gateway": urlsplit(gateway).netloc}
            with prometheus(tmp_path, **targets) as server:
                rows = {"in": 10.0, "out": 7.0, "filtered": 1.0, "rejected": 2.0}
                assert _rows_seen_by(server, "live") == rows
                assert _rows_seen_by(server, "corpus") == rows
                ((_, median),) = query(
                    server, 'histogram_quantile(0.5, treadle_run_unit_seconds_bucket{job="corpus"})'
                )
                assert 0.1 < median <= 0.5
    finally:
        pulled.close()


def test_the_tool_of_prometheus_finds_no_fault_with_the_names() -> None:
    promtool = binary("promtool")
    given = RecordingSink()
    sink = open_sinks(given=given, prometheus=PrometheusSpec("pull"))
    try:
        run_into(sink)
        endpoint = given.events[1]
        assert isinstance(endpoint, MetricsEndpoint)
        shown = fetch(endpoint.url)
    finally:
        sink.close()
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=shown, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.parametrize("again", [1, 2])
def test_a_second_run_of_a_step_takes_the_place_of_the_first(tmp_path: Path, again: int) -> None:
    with push_gateway(tmp_path) as gateway:
        for _ in range(again):
            sink = open_sinks(prometheus=PrometheusSpec("push", url=gateway))
            run_into(sink)
            sink.close()
        shown = [line for line in fetch(f"{gateway}/metrics").splitlines() if line.startswith(f"{ROWS}{{")]
    assert len(shown) == 4
