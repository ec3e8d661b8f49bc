import socket
import threading
from pathlib import Path
from typing import cast
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.telemetry.readings import START, run_into
from treadle.errors import RunError
from treadle.telemetry import (
    MetricsEndpoint,
    MetricsFinalized,
    MetricsSnapshot,
    MetricsUnsent,
    OpenSinks,
    PrometheusSpec,
    RecordingSink,
    ResourcesSampled,
    RunStarted,
    open_sinks,
)
from treadle.telemetry.catalogue import CATALOGUE

LABELS = {"step": "corpus.partition", "run_type": "partition"}


def _values(text: str) -> dict[tuple[str, ...], float]:
    """The samples: name and own label values, without those of every metric."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels.items() >= LABELS.items()
            own = [value for name, value in sample.labels.items() if name not in LABELS]
            found[sample.name, *own] = sample.value
    return found


def _fetch(url: str) -> str:
    with build_opener(ProxyHandler({})).open(url, timeout=10) as answer:
        return cast("bytes", answer.read()).decode()


def _threads() -> set[str]:
    ours = ("treadle-prometheus", "treadle-metrics", "treadle-sampler")
    return {each.name for each in threading.enumerate() if each.name in ours}


def _open(spec: PrometheusSpec) -> tuple[OpenSinks, RecordingSink]:
    given = RecordingSink()
    return open_sinks(given=given, prometheus=spec), given


def test_a_text_file_has_the_numbers_of_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.prom"
    sink, _ = _open(PrometheusSpec("textfile", path=str(path), interval=60))
    run_into(sink)
    values = _values(path.read_text())
    sink.close()
    assert values["treadle_run_rows_total", "in"] == 10
    assert values["treadle_run_rows_total", "out"] == 7
    assert values["treadle_run_rejects_total", "not-json"] == 2
    assert values["treadle_run_units_done_total",] == values["treadle_run_units_skipped_total",] == 1
    assert values["treadle_run_progress_ratio",] == 1
    assert values["treadle_run_workers",] == 3
    assert values["treadle_run_ended", "finished"] == 1
    assert values["treadle_run_ended", "failed"] == 0
    assert values["treadle_run_info", "1", "r1"] == 1
    assert values["treadle_run_unit_seconds_bucket", "0.1"] == 0
    assert values["treadle_run_unit_seconds_bucket", "0.5"] == 1
    assert values["treadle_run_unit_seconds_bucket", "+Inf"] == values["treadle_run_unit_seconds_count",] == 1
    assert values["treadle_run_stage_seconds_count", "read"] == 1
    assert [each.name for each in path.parent.iterdir()] == ["run.prom"]
    assert sink.notes() == ()
    assert not _threads()


def test_every_metric_of_the_catalogue_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "run.prom"
    sink, _ = _open(PrometheusSpec("textfile", path=str(path)))
    run_into(sink)
    sink.close()
    families = {
        each.name: (each.type, each.documentation, bool(each.samples))
        for each in text_string_to_metric_families(path.read_text())
    }
    *_, has_samples = families.pop("treadle_run_queue_items")
    assert not has_samples, "no queue is left at the end"
    assert families == {
        each.name.removesuffix("_total"): (each.kind, each.help, True)
        for each in CATALOGUE
        if each.name != "treadle_run_queue_items"
    }


def test_nothing_is_written_before_something_was_measured(tmp_path: Path) -> None:
    sink, _ = _open(PrometheusSpec("textfile", path=str(tmp_path / "run.prom"), interval=0.001))
    sink.emit(START)
    sink.close()
    assert list(tmp_path.iterdir()) == []


def test_a_text_file_is_written_while_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.prom"
    sink, _ = _open(PrometheusSpec("textfile", path=str(path), interval=0.005))
    sink.emit(START)
    sink.emit(ResourcesSampled(5, 0.5, 1, MetricsSnapshot({"rows_in": 3}, {}, 5, 0.5)))
    waiting = threading.Event()
    for _ in range(2000):
        if path.exists():
            break
        waiting.wait(0.005)
    values = _values(path.read_text())
    sink.close()
    assert values["treadle_run_rows_total", "in"] == 3
    assert values["treadle_run_ended", "finished"] == 0


def test_an_endpoint_serves_until_it_is_closed_and_says_where() -> None:
    sink, given = _open(PrometheusSpec("pull"))
    run_into(sink)
    started, endpoint = given.events[:2]
    assert isinstance(started, RunStarted)
    assert isinstance(endpoint, MetricsEndpoint)
    assert endpoint.url.startswith("http://127.0.0.1:")
    assert _values(_fetch(endpoint.url))["treadle_run_rows_total", "in"] == 10
    sink.close()
    sink.close()
    assert not _threads()
    with pytest.raises(OSError, match="refused"):
        _fetch(endpoint.url)


def test_an_address_in_use_is_an_error_before_the_run(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RunError, match=f"address {address}: cannot listen there"):
            open_sinks(log=str(tmp_path / "log"), prometheus=PrometheusSpec("pull", address=address))
    assert not _threads()


def test_the_outcome_of_the_end_stays() -> None:
    sink, given = _open(PrometheusSpec("pull"))
    run_into(sink)
    sink.emit(ResourcesSampled(5, 0.5, 1, MetricsSnapshot({"rows_in": 99}, {}, 5, 0.5)))
    sink.emit(MetricsFinalized("failed", MetricsSnapshot({}, {}, 5, 0.5)))
    endpoint = given.events[1]
    assert isinstance(endpoint, MetricsEndpoint)
    values = _values(_fetch(endpoint.url))
    sink.close()
    assert (values["treadle_run_rows_total", "in"], values["treadle_run_ended", "finished"]) == (10, 1)


def test_a_gateway_that_is_not_there_is_told_once_and_fails_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    sink, given = _open(
        PrometheusSpec("push", url=f"http://user:secret@127.0.0.1:{port}", interval=0.001, timeout=5)
    )
    run_into(sink, interval=0.01)
    (note,) = sink.notes()
    sink.close()
    assert f"not sent to push gateway http://127.0.0.1:{port}: " in note
    assert [each.reason for each in given.events if isinstance(each, MetricsUnsent)] == [note]
    assert not _threads()


def test_a_gateway_that_never_answers_is_waited_for_only_so_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        sink, given = _open(PrometheusSpec("push", url=url, interval=60, timeout=0.1))
        run_into(sink)
        sink.close()
    assert any("timed out" in note or "within 0.2 seconds" in note for note in sink.notes())
    assert any(isinstance(each, MetricsUnsent) for each in given.events)


def test_what_no_gateway_says_is_told_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as strange:
        babble = threading.Thread(target=_babble, args=[strange])
        babble.start()
        url = f"http://127.0.0.1:{strange.getsockname()[1]}"
        sink, _ = _open(PrometheusSpec("push", url=url, interval=60))
        run_into(sink)
        sink.close()
        babble.join()
    assert "SSH-2.0" in sink.notes()[0]


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    sink, _ = _open(PrometheusSpec("textfile", path=str(folder / "run.prom"), interval=60))
    folder.rmdir()
    run_into(sink)
    sink.close()
    assert "No such file" in sink.notes()[0]


def test_a_folder_that_cannot_be_made_is_an_error_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"run\.prom: cannot make its folder"):
        open_sinks(prometheus=PrometheusSpec("textfile", path=str(tmp_path / "file" / "x" / "run.prom")))


def _babble(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(b"SSH-2.0-OpenSSH\r\n")
