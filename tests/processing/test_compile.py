"""Where a manifest reads and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from treadle.errors import ManifestError
from treadle.manifest import read_manifest
from treadle.processing.compile import below, compile_step_manifest, quarantine_path
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
    assert plan.quarantine == (f"{workshop.out}/step.quarantine.jsonl" if kept else None)
    assert not Path(workshop.out).exists()


@pytest.mark.parametrize(
    "log",
    [
        "rows",
        "rows/log.jsonl",
        "x/../rows/log.jsonl",
        ".",
        "step.quarantine.jsonl",
        "/data/in/log.jsonl",
        "s3://b/l",
    ],
)
def test_the_log_lies_apart(workshop: Any, log: str) -> None:
    """Events in an output or in the input would be read as rows, and a quarantine would replace them."""
    manifest = workshop.manifest(f"""
        run: {{type: partition}}
        inputs: {{documents: {{backend: jsonl, path: "/data/in/*.jsonl"}}}}
        outputs: {{rows: {{backend: jsonl, path: rows}}}}
        errors: {{on_bad_row: quarantine}}
        metrics: {{log: "{log}"}}
    """)
    with pytest.raises(ManifestError) as caught:
        compile_step_manifest(read_manifest(manifest, {}, {}), RunContext.create("step", workshop.out))
    assert caught.value.problems[0].field == "metrics.log"


def test_steps_that_share_a_root_keep_their_bad_rows(workshop: Any) -> None:
    """A second step without bad rows clears its own quarantine, not that of the first."""
    paths = [quarantine_path(RunContext.create(step, "/root")) for step in ("a", "b", "../a", "a/b", ".")]
    assert paths[0] == "/root/a.quarantine.jsonl"
    assert len({Path(each) for each in paths}) == 5
    assert {str(Path(each).parent) for each in paths} == {"/root"}
