"""Runs of one partition in child processes, to be killed, and what they leave; helpers for the tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from treadle.processing import RunContext, RunOutcome, run_from_manifest

MANIFEST = """
drtml_version: 4
step_id: step
params: {in: {type: path}}
run: {type: partition}
inputs: {documents: {backend: jsonl, path: "${params.in}/*.jsonl"}}
TRANSFORM
parallelism: {batch_rows: 3, BACKEND}
CHECKPOINT
errors: {on_bad_row: quarantine}
"""
INPROCESS = "backend: inprocess"
TOKENIZE = """
transform: {name: tokenize, keep: [id]}
outputs: {rows: {backend: jsonl, path: rows}, registry: {backend: parquet, path: registry}}
"""
KILL = """
transform: {name: kill, word: WORD, marker: MARKER, times: TIMES}
outputs: {rows: {backend: jsonl, path: rows}}
"""
CHILD = """
import sys
from treadle.processing import RunContext, run_from_manifest
manifest, rows, out = sys.argv[1:]
run_from_manifest(manifest, RunContext.create("step", out), {"in": rows})
"""


def write_shards(folder: Path, count: int, rows: int = 20) -> list[Path]:
    """Shards of different rows, each with one bad row."""
    folder.mkdir(parents=True, exist_ok=True)
    return [write_shard(folder, number, rows) for number in range(count)]


def write_shard(folder: Path, number: int, rows: int = 20, word: str = "word") -> Path:
    path = folder / f"s{number:03d}.jsonl"
    lines = [
        json.dumps({"id": f"{number}-{row}", "text": f"{word} {row} of {number}"}) for row in range(rows)
    ]
    path.write_text("\n".join([*lines, "not json", ""]))
    return path


def write_manifest(
    root: Path, backend: str = INPROCESS, *, checkpoint: bool = True, transform: str = TOKENIZE
) -> Path:
    """The manifest of the runs of a test."""
    path = root / "manifest.yaml"
    kept = "checkpoint: {}" if checkpoint else ""
    body = MANIFEST.replace("BACKEND", backend).replace("TRANSFORM", transform)
    path.write_text(body.replace("CHECKPOINT", kept))
    return path


def killing(root: Path, word: str, times: int = 1) -> str:
    """The transform of `killer_plugin`, with a fresh folder of marks."""
    marker = root / "marks"
    marker.mkdir()
    return KILL.replace("WORD", word).replace("MARKER", str(marker)).replace("TIMES", str(times))


def run(manifest: Path, rows: Path, out: Path) -> RunOutcome:
    return run_from_manifest(manifest, RunContext.create("step", out), {"in": str(rows)})


def start(manifest: Path, rows: Path, out: Path, **environment: str) -> subprocess.Popen[bytes]:
    """The run in a process group of its own, so that its workers can be killed with it."""
    command = [sys.executable, "-c", CHILD, str(manifest), str(rows), str(out)]
    return subprocess.Popen(command, env={**os.environ, **environment}, start_new_session=True)


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the run alone; its workers notice by themselves."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def contents(out: Path) -> Mapping[str, bytes]:
    """Every visible file of rows and quarantine, by its place below `out`."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and not path.name.endswith(("account.json", "_manifest.json"))
    }
