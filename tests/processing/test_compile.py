"""Where a manifest reads and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from treadle.errors import ManifestError
from treadle.manifest import read_manifest
from treadle.processing.compile import below, compile_step_manifest, quarantine_path
from treadle.processing.context import RunContext
from treadle.storage import Dataset, OutputSpec


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
    assert plan.outputs == {"rows": OutputSpec("jsonl", f"{workshop.out}/rows", compression="gzip")}
    assert plan.quarantine == (f"{workshop.out}/step.quarantine.jsonl" if kept else None)
    assert plan.checkpoint is None
    assert plan.account == f"{workshop.out}/step.account.json"
    assert not Path(workshop.out).exists()


def test_everything_that_can_be_said_of_inputs_and_outputs_is_in_the_plan(workshop: Any) -> None:
    """A key that is accepted and then does nothing is worse than none."""
    manifest = workshop.manifest("""
        run: {type: partition}
        inputs:
          documents:
            {backend: jsonl, path: a, types: {n: int64}, missing: "null", split_bytes: 9}
        outputs:
          rows: {backend: parquet, path: rows, mode: append, lanes: 3, on_type_change: text}
        checkpoint: {}
        metrics: {trace: trace.json}
    """)
    ctx = RunContext.create("step", workshop.out)
    plan = compile_step_manifest(read_manifest(manifest, {}, {}), ctx)
    assert plan.inputs["documents"] == Dataset(
        "jsonl", "a", types={"n": "int64"}, missing="null", split_bytes=9
    )
    assert plan.outputs["rows"] == OutputSpec(
        "parquet", f"{workshop.out}/rows", mode="append", lanes=3, on_type_change="text"
    )
    assert plan.checkpoint == f"{workshop.out}/.step.checkpoint"
    assert plan.trace == f"{workshop.out}/trace.json"


def test_formats_are_checked_where_they_stand(workshop: Any) -> None:
    """All at once, each with the nearest name."""
    manifest = workshop.manifest("""
        run: {type: partition}
        inputs: {documents: {backend: jsonnl, path: a}}
        outputs: {rows: {backend: parket, path: rows}}
    """)
    with pytest.raises(ManifestError) as caught:
        compile_step_manifest(read_manifest(manifest, {}, {}), RunContext.create("step", workshop.out))
    assert [each.field for each in caught.value.problems] == [
        "inputs.documents.backend",
        "outputs.rows.backend",
    ]
    assert [each.nearest for each in caught.value.problems] == ["jsonl", "parquet"]


def test_workers_cannot_read_the_memory_of_this_process(workshop: Any) -> None:
    """They would find nothing there, and say that the file is gone."""
    manifest = workshop.manifest("""
        run: {type: partition}
        inputs: {documents: {backend: jsonl, path: "memory://a"}}
        outputs: {rows: {backend: parquet, path: "memory://rows"}}
        parallelism: {backend: processes}
    """)
    with pytest.raises(ManifestError) as caught:
        compile_step_manifest(read_manifest(manifest, {}, {}), RunContext.create("step", workshop.out))
    assert [each.field for each in caught.value.problems] == ["inputs.documents.path", "outputs.rows.path"]


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


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('inputs: {d: {backend: csv, path: x.csv, options: {delimitr: ";"}}}', "did you mean 'delimiter'"),
        ("outputs: {rows: {backend: postgres, path: 'postgresql://h/d'}}", "table"),
        ("outputs: {rows: {backend: parquet, path: rows, options: {a: 1}}}", "expected no option"),
    ],
)
def test_options_of_formats_are_checked_before_anything_runs(workshop: Any, section: str, said: str) -> None:
    body = f"""
        run: {{type: custom, entry: builtins:print}}
        {section}
    """
    with pytest.raises(ManifestError) as caught:
        workshop.run(body)
    (problem,) = caught.value.problems
    assert problem.field.endswith(".options")
    assert said in problem.found
