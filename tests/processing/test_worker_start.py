"""What a worker loads before its first unit. How long that takes is measured in `bench/startup.py`."""

import json
from pathlib import Path

from treadle.processing import RunContext, run_from_manifest

MANIFEST = """
drtml_version: 4
step_id: look
run: {type: transform}
inputs: {rows: {backend: jsonl, path: rows.jsonl}}
transforms: [{name: map, entry: "tests.processing.loaded_modules:tell"}]
outputs: {rows: {backend: jsonl, path: "${run.output}/rows"}}
parallelism: {backend: processes, workers: 1}
"""
DRIVER = {
    *("cyclopts", "psutil", "rich", "yaml", "tomllib"),
    *("treadle.integrations", "treadle.telemetry.metrics", "treadle.telemetry.opening"),
    *("treadle.manifest.load", "treadle.artifacts.store", "treadle.storage.session", "treadle.fray.threads"),
    *("treadle.processing.job", "treadle.processing.dispatch", "treadle.processing.workplace"),
}


def test_a_worker_loads_nothing_that_only_the_driver_needs(tmp_path: Path) -> None:
    """Each of many workers pays for it, before it does anything."""
    (tmp_path / "rows.jsonl").write_text('{"id": 1}\n')
    manifest = tmp_path / "look.yaml"
    manifest.write_text(MANIFEST.replace("rows.jsonl", str(tmp_path / "rows.jsonl"), 1))
    run_from_manifest(manifest, RunContext.create("look", tmp_path / "out"))
    (part,) = (tmp_path / "out" / "rows").glob("*.jsonl*")
    loaded = set(json.loads(part.read_text())["loaded"].split())
    assert "treadle.processing.unit_run" in loaded
    assert not DRIVER & loaded
