"""Where a manifest reads and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from treadle.manifest import read_manifest
from treadle.processing.compile import below, compile_step_manifest
from treadle.processing.context import RunContext
from treadle.storage import Dataset


@pytest.mark.parametrize(
    ("path", "expected"),
    [("rows", "root/rows"), ("/tmp/rows", "/tmp/rows"), ("s3://bucket/rows", "s3://bucket/rows")],
)
def test_relative_paths_lie_below_the_root(path: str, expected: str) -> None:
    assert below("root/", path) == expected


@pytest.mark.parametrize(("mode", "kept"), [("quarantine", True), ("skip", False), ("fail", False)])
def test_the_plan(workshop: Any, mode: str, kept: bool) -> None:
    """Inputs stay as written, outputs go below the output root, a quarantine is there only when asked for."""
    manifest = workshop.manifest(f"""
        run: {{type: partition}}
        inputs: {{documents: {{backend: jsonl, path: data/*.jsonl, columns: [id, text]}}}}
        outputs: {{rows: {{backend: jsonl, path: rows, compression: gzip}}}}
        errors: {{on_bad_row: {mode}}}
    """)
    ctx = RunContext.create("step", workshop.out)
    plan = compile_step_manifest(read_manifest(manifest, {}, {}), ctx)
    assert plan.inputs == {"documents": Dataset("jsonl", "data/*.jsonl", columns=("id", "text"))}
    assert plan.outputs == {"rows": Dataset("jsonl", f"{workshop.out}/rows", compression="gzip")}
    assert plan.quarantine == (f"{workshop.out}/quarantine.jsonl" if kept else None)
    assert not Path(workshop.out).exists()
