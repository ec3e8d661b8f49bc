"""A run that failed goes on over inputs that have changed since: files as they were are not read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.errors import BadRowError
from treadle.processing import RunContext, RunOutcome, run_from_manifest
from treadle.telemetry import RecordingSink, UnitSkipped

SECTIONS = {
    "partition": ("documents", "transform: {name: tokenize, keep: [id]}", "rows"),
    "transform": ("documents", "transforms: [{name: count_words, column: text}]", "rows"),
    "dedup": ("rows", "dedup: {columns: [text], method: exact}", "rows"),
    "mapping": ("registry", "mapping: {min_count: 1}", "mapping"),
    "reduce": ("rows", "reduce: {keys: [text], aggregates: {n: {function: count}}}", "sums"),
}
MANIFEST = """
drtml_version: 4
step_id: step
params: {in: {type: path}}
run: {type: TYPE}
inputs: {INPUT: {backend: jsonl, path: "${params.in}/*.jsonl"}}
SECTION
outputs: {OUTPUT: {backend: jsonl, path: out}}
parallelism: {backend: processes, workers: 2}
checkpoint: {}
"""
FILES = 6
BAD = FILES - 1
Change = Callable[[Path], None]


def write(folder: Path, name: str, word: str = "word", *, bad: bool = False) -> None:
    folder.mkdir(exist_ok=True)
    rows = [
        {"id": f"{name}-{row}", "text": f"{word} {row % 5}", "term": word, "count": 1, "documents": 1}
        for row in range(30)
    ]
    lines = [json.dumps(row) for row in rows]
    (folder / f"{name}.jsonl").write_text("\n".join([*lines, *(["{"] if bad else []), ""]))


def run(root: Path, run_type: str, out: str, sink: RecordingSink | None = None) -> RunOutcome:
    source, section, output = SECTIONS[run_type]
    body = MANIFEST.replace("TYPE", run_type).replace("SECTION", section)
    manifest = root / "manifest.yaml"
    manifest.write_text(body.replace("INPUT", source).replace("OUTPUT", output))
    ctx = RunContext.create("step", root / out)
    return run_from_manifest(manifest, ctx, {"in": str(root / "in")}, sink=sink)


def add(folder: Path) -> None:
    write(folder, "a-first")
    write(folder, "z-last")


def remove(folder: Path) -> None:
    (folder / "s1.jsonl").unlink()


def change(folder: Path) -> None:
    write(folder, "s2", "another")


def all_three(folder: Path) -> None:
    add(folder)
    remove(folder)
    change(folder)


@pytest.mark.parametrize(
    ("changed", "reused"),
    [
        pytest.param(lambda folder: None, {0, 1, 2, 3, 4}, id="nothing more", marks=pytest.mark.slow),
        pytest.param(add, {0, 1, 2, 3, 4}, id="added"),
        pytest.param(remove, {0, 2, 3, 4}, id="removed", marks=pytest.mark.slow),
        pytest.param(change, {0, 1, 3, 4}, id="changed", marks=pytest.mark.slow),
        pytest.param(all_three, {0, 3, 4}, id="all three"),
    ],
)
@pytest.mark.parametrize("run_type", SECTIONS)
def test_units_of_files_that_are_as_they_were_are_taken_from_the_checkpoint(
    tmp_path: Path, run_type: str, changed: Change, reused: set[int]
) -> None:
    for number in range(FILES):
        write(tmp_path / "in", f"s{number}", bad=number == BAD)
    with pytest.raises(BadRowError):
        run(tmp_path, run_type, "cut")
    write(tmp_path / "in", f"s{BAD}")
    changed(tmp_path / "in")
    sink = RecordingSink()
    went_on = run(tmp_path, run_type, "cut", sink)
    taken = [each.unit.partition("-")[2] for each in sink.events if isinstance(each, UnitSkipped)]
    assert sorted(taken) == [f"s{number}" for number in sorted(reused)]
    anew = run(tmp_path, run_type, "anew")
    assert went_on.counters == anew.counters
    assert seen(tmp_path / "cut" / "out") == seen(tmp_path / "anew" / "out")


def seen(out: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in out.glob("part-*")}
