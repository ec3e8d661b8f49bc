"""Runs that are told to end, by Ctrl-C or as a cluster does it, and what they say beside their rows."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integrations.cli.conftest import Project

MANIFEST = """
drtml_version: 4
step_id: words
run: {type: transform}
inputs: {documents: {backend: jsonl, path: "in/*.jsonl"}}
transforms: [{name: map, entry: "slow:slow"}]
outputs: {rows: {backend: jsonl, path: rows}}
errors: {on_bad_row: quarantine}
parallelism: {batch_rows: 1, BACKEND}
"""
SLOW = """
import time
from pathlib import Path

def slow(row):
    if row["file"] and not Path("go").exists():
        Path("reached").touch()
        time.sleep(0.05)
    return row
"""
INPROCESS, PROCESSES = "backend: inprocess", "backend: processes, workers: 2"
HOW = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "told to end by SIGTERM")}


@pytest.fixture
def manifest(project: Project) -> Callable[..., Path]:
    """A manifest whose first file is done at once, and whose others take minutes until there is `go`."""
    (project.folder / "slow.py").write_text(SLOW)
    (project.folder / "in").mkdir()
    for number in range(4):
        lines = "".join(f"{json.dumps({'file': number})}\n" for _ in range(3000 if number else 1))
        (project.folder / f"in/{number}.jsonl").write_text(lines)

    def write(backend: str, more: str = "") -> Path:
        path = project.folder / "words.yaml"
        path.write_text(MANIFEST.replace("BACKEND", backend) + more)
        return path

    return write


def start(project: Project, path: Path) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(project.folder), os.environ.get("PYTHONPATH", "")])
    return project.start("manifest", "run", path.name, "--output", "out", PYTHONPATH=paths)


def wait_for(process: subprocess.Popen[str], there: Callable[[], bool]) -> None:
    while not there():
        assert process.poll() is None, process.communicate()


def hidden(project: Project) -> list[str]:
    out = project.folder / "out"
    return sorted(each.name for each in out.iterdir()) if out.exists() else []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("backend", [INPROCESS, PROCESSES])
def test_a_run_that_is_told_to_end_leaves_nothing_and_says_how_to_begin_again(
    project: Project, manifest: Callable[..., Path], backend: str, number: signal.Signals
) -> None:
    process = start(project, manifest(backend))
    wait_for(process, (project.folder / "reached").exists)
    process.send_signal(number)
    _, said = process.communicate()
    code, what = HOW[number]
    assert process.returncode == code, said
    assert said == (
        f"treadle: {what}\n"
        "  without a checkpoint nothing of a run is kept before its end; "
        "to begin again: treadle manifest run words.yaml --output out\n"
    )
    assert hidden(project) == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_end_while_its_workers_start_leaves_nothing(
    project: Project, manifest: Callable[..., Path], number: signal.Signals
) -> None:
    process = start(project, manifest(PROCESSES))
    wait_for(process, lambda: bool(list(project.folder.glob("out/.rows.staging-*/units"))))
    process.send_signal(number)
    process.communicate()
    assert process.returncode == HOW[number][0]
    assert hidden(project) == []


@pytest.mark.timeout(60)
def test_a_run_that_is_told_again_and_again_is_not_torn_from_its_clean_up(
    project: Project, manifest: Callable[..., Path]
) -> None:
    """What `timeout` and services do: the process is told, and its group with it."""
    process = start(project, manifest(PROCESSES))
    wait_for(process, (project.folder / "reached").exists)
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert process.returncode == 143, said
    assert hidden(project) == []


@pytest.mark.timeout(60)
def test_a_run_with_a_checkpoint_says_how_to_go_on_and_does(
    project: Project, manifest: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(project.folder)
    process = start(project, manifest(PROCESSES, "checkpoint: {}\n"))
    records = project.folder / "out" / ".words.checkpoint" / "units"
    wait_for(process, lambda: bool(list(records.glob("*.json"))))
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert process.returncode == 143
    line = said.splitlines()[-1]
    assert line.startswith(f"  what is done is kept in {records.parent}; to go on: treadle ")
    (project.folder / "go").touch()
    again = project(*shlex.split(line.partition(": treadle ")[2]))
    assert again.code == 0, again.err
    assert "1 of 4 units were done already" in again.out


@pytest.mark.timeout(60)
def test_an_experiment_that_is_told_to_end_says_how_to_go_on(project: Project) -> None:
    gate = project.folder / "gate"
    process = project.start("run", project.target, GATE=str(gate))
    wait_for(process, Path(f"{gate}.reached").exists)
    process.send_signal(signal.SIGTERM)
    gate.touch()
    _, said = process.communicate()
    assert process.returncode == 143, said
    assert said.endswith(
        f"treadle: told to end by SIGTERM\n  what is done is kept; to go on: treadle run {project.target}\n"
    )


@pytest.mark.parametrize("mode", ["push", "textfile"])
def test_metrics_that_cannot_be_handed_over_are_a_warning_and_no_failure(
    project: Project, manifest: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    (project.folder / "full").mkdir()
    where = {"push": f'url: "{url}"', "textfile": f'path: "{project.folder}/full"'}[mode]
    more = f"runtime: {{metrics_enabled: true}}\nmetrics: {{prometheus: {{mode: {mode}, {where}}}}}\n"
    (project.folder / "go").touch()
    monkeypatch.syspath_prepend(project.folder)
    done = project("manifest", "run", manifest(INPROCESS, more).name, "--output", "out")
    said = [
        line for line in done.err.splitlines() if line.startswith("treadle: warning: metrics were not sent")
    ]
    assert done.code == 0, done.err
    assert len(said) == 1, done.err
    assert {"push": url, "textfile": str(project.folder / "full")}[mode] in said[0]
    assert (
        f"see that {'one listens' if mode == 'push' else 'this user may write'} at metrics.prometheus"
        in said[0]
    )


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_an_output_on_a_kind_of_storage_that_cannot_have_it_is_a_wrong_request(
    project: Project, manifest: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.syspath_prepend(project.folder)
    done = project("manifest", "run", manifest(INPROCESS).name, "--output", f"{scheme}://bucket/run")
    assert done.code == 2
    assert f"cannot write an output to {scheme}://" in done.err
    assert "expected a local path or s3://" in done.err
