"""How long a user waits for `treadle --help`, for the check of a manifest, and for a run of two rows.

Medians of ten runs: the wall time of the command, and the CPU time of it and its workers. Bytecode is kept,
in a folder of its own, as it is for a package that was installed.

python bench/startup.py
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TREADLE = str(Path(sys.executable).with_name("treadle"))
MANIFEST = """\
drtml_version: 4
step_id: tokens
run: {type: partition}
inputs: {documents: {backend: jsonl, path: "shards/*.jsonl", columns: [id, text]}}
transform: {name: tokenize, keep: [id]}
outputs: {rows: {backend: parquet, path: "${run.output}/rows", mode: overwrite}}
"""
WORKERS = "parallelism: {backend: processes, workers: 2}\n"
MANIFEST_COMMANDS = (
    ("check", "tokens.yaml"),
    ("explain", "tokens.yaml"),
    ("schema",),
    ("plan", "tokens.yaml", "--output", "out"),
    ("run", "tokens.yaml", "--output", "out"),
    ("run", "workers.yaml", "--output", "out"),
)
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import treadle": [sys.executable, "-c", "import treadle"],
    "treadle --help": [TREADLE, "--help"],
    **{f"treadle manifest {' '.join(each[:2])}": [TREADLE, "manifest", *each] for each in MANIFEST_COMMANDS},
}


class Taken(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def taken(command: list[str], folder: Path) -> Taken:
    """What a whole process takes, with the children that it waits for."""
    kept = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env={**os.environ, **kept})
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def medians(command: list[str], folder: Path, runs: int = 10) -> Taken:
    """After one run that is not counted."""
    taken(command, folder)
    measured = [taken(command, folder) for _ in range(runs)]
    return Taken(*(statistics.median(each) for each in zip(*measured, strict=True)))


def write_inputs(folder: Path) -> None:
    (folder / "tokens.yaml").write_text(MANIFEST)
    (folder / "workers.yaml").write_text(MANIFEST + WORKERS)
    (folder / "shards").mkdir()
    for each in "ab":
        (folder / "shards" / f"{each}.jsonl").write_text(f'{{"id": "{each}", "text": "war and peace"}}\n')


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        for title, command in COMMANDS.items():
            found = medians(command, folder)
            print(f"{title:34} {found.wall:.3f} s, {found.cpu:.3f} s of CPU")


if __name__ == "__main__":
    main()
