"""Runs of type `generate` on a tiny model, here and in children to be killed; helpers for the tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from treadle.processing import RunContext, RunOutcome, run_from_manifest
from treadle.storage import Dataset, read_table

BATCH = 4
SECTION: Mapping[str, Any] = {
    "prompt": "{word} and then",
    "chat": False,
    "batch": BATCH,
    "threads": 1,
    "kernels": "torch",  # nothing to compile first
    "max_new_tokens": 8,
    "temperature": 0.9,
}
_SECTIONS = {"checkpoint", "errors", "parallelism", "runtime"}
CHILD = """
import os, sys
from treadle.engine import Engine
from treadle.processing import RunContext, run_from_manifest

manifest, out = sys.argv[1:]
generate = Engine.generate

def told(requests):
    for each in requests:
        os.write(1, f"{each.id}\\n".encode())
        yield each

Engine.generate = lambda engine, requests: generate(engine, told(requests))
run_from_manifest(manifest, RunContext.create("step", out))
"""


class Asking:
    """A folder with rows and a model; each run has the keys of `SECTION` with some changes."""

    def __init__(self, root: Path, model: Path) -> None:
        self.root = root
        self.model = model
        self.rows = root / "in"
        self.rows.mkdir(parents=True)

    def write(self, name: str, rows: Iterable[Mapping[str, object]]) -> Path:
        """A file of rows."""
        path = self.rows / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path

    def manifest(self, *, backend: str = "parquet", **given: Any) -> Path:
        """What is run; `given` are sections of the manifest, and keys of the section `generate`."""
        sections = {key: given.pop(key) for key in _SECTIONS & given.keys()}
        content = {
            "drtml_version": 4,
            "step_id": "step",
            "run": {"type": "generate"},
            "inputs": {"rows": {"backend": "jsonl", "path": str(self.rows)}},
            "generate": {"model": str(self.model), **SECTION, **given},
            "outputs": {"answers": {"backend": backend, "path": "answers"}},
            "parallelism": {"batch_rows": 3},
            "checkpoint": {},
            **sections,
        }
        path = self.root / "manifest.yaml"
        path.write_text(json.dumps(content))  # which YAML reads too
        return path

    def run(self, out: str = "out", **given: Any) -> RunOutcome:
        """A run in this process; `given` as for `manifest`."""
        return run_from_manifest(self.manifest(**given), RunContext.create("step", self.root / out))

    def answers(self, out: str = "out", backend: str = "parquet") -> list[dict[str, Any]]:
        """The rows of the output, but for what they cost, which is measured."""
        rows = read_table(Dataset(backend, str(self.root / out / "answers"))).to_pylist()
        return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]

    def run_and_kill(self, out: str, after: int, **given: Any) -> list[str]:
        """A run in a child that is killed when it has asked about so many rows; all that it asked about."""
        command = [sys.executable, "-c", CHILD, str(self.manifest(**given)), str(self.root / out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            asked = [name for _, name in zip(range(after), child.stdout, strict=False)]
            child.kill()
            return [*asked, *child.stdout]


def before(outcome: RunOutcome) -> int:
    """How many rows had an answer when the run began."""
    return outcome.counters.extra.get("answered_before", 0)


def words(count: int, start: int = 0) -> Iterator[dict[str, object]]:
    """Rows, some of whose prompts are the same."""
    return ({"id": f"row {number}", "word": f"word {number % 7}"} for number in range(start, start + count))
