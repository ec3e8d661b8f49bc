"""Runs whose output folder is on an object store."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from treadle.errors import BadRowError, ManifestError, RunError
from treadle.processing import RunContext, RunOutcome, run_from_manifest
from treadle.storage import Dataset, read_table

MANIFEST = """
drtml_version: 4
step_id: step
run: {type: transform}
inputs: {documents: {backend: jsonl, path: "IN/*.jsonl"}}
transforms: [{name: count_words, column: text}]
outputs: {rows: {backend: parquet, path: rows}}
parallelism: {backend: processes, workers: 2}
"""


def run(folder: Path, out: str, more: str) -> RunOutcome:
    manifest = folder / "manifest.yaml"
    manifest.write_text(MANIFEST.replace("IN", str(folder)) + more)
    return run_from_manifest(manifest, RunContext.create("step", out))


@pytest.fixture
def out(s3: str) -> str:
    return f"{s3}/{uuid4().hex}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, of which the last has a bad row."""
    for number in range(3):
        good = "".join(f'{{"text": "row {row} of {number}"}}\n' for row in range(20))
        (tmp_path / f"s{number}.jsonl").write_text(good + "{\n" * (number == 2))
    return tmp_path


def names(out: str) -> set[str]:
    fs, path = fsspec.core.url_to_fs(out)
    fs.invalidate_cache()
    return {str(each).rpartition("/")[2] for each in fs.ls(path, detail=False)} if fs.exists(path) else set()


def test_bad_rows_and_the_account_lie_beside_the_outputs(folder: Path, out: str) -> None:
    outcome = run(folder, out, "errors: {on_bad_row: quarantine}\n")
    assert names(out) == {"rows", "step.quarantine.jsonl", "step.account.json"}
    with fsspec.open(f"{out}/step.quarantine.jsonl") as file:
        assert [json.loads(line)["line"] for line in file] == [21]
    with fsspec.open(str(outcome.account)) as file:
        assert json.load(file)["total"]["rejected"] == 1
    assert read_table(Dataset("parquet", f"{out}/rows")).num_rows == 60


def test_too_many_bad_rows_leave_only_the_quarantine(folder: Path, out: str) -> None:
    with pytest.raises(RunError):
        run(folder, out, "errors: {on_bad_row: quarantine, max_bad_rows: 0}\n")
    assert names(out) == {"step.quarantine.jsonl"}


def test_a_run_that_failed_goes_on_by_a_checkpoint_on_this_machine(folder: Path, out: str) -> None:
    kept = folder / "kept"
    checkpoint = f"checkpoint: {{path: {kept}}}\n"
    with pytest.raises(BadRowError):
        run(folder, out, checkpoint)
    assert names(out) == set()
    (folder / "s2.jsonl").write_text('{"text": "mended"}\n')
    outcome = run(folder, out, checkpoint)
    assert [each.resumed for each in outcome.units] == [True, True, False]
    assert read_table(Dataset("parquet", f"{out}/rows")).num_rows == 41
    assert list(kept.iterdir()) == []


def test_a_checkpoint_that_would_be_on_the_store_is_refused_with_its_key(folder: Path) -> None:
    with pytest.raises(ManifestError, match=r"checkpoint\.path: expected a folder of this machine"):
        run(folder, "s3://bucket/run", "checkpoint: {}\n")
