"""How long a user waits for `import treadle`, for `treadle --help` and for a manifest to be checked.

Medians of ten runs.

python bench/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TREADLE = str(Path(sys.executable).with_name("treadle"))
MANIFEST = """\
drtml_version: 4
step_id: tokens
run: {type: partition}
inputs: {documents: {backend: jsonl, path: "shards/*.jsonl.gz", columns: [id, text]}}
transform: {name: tokenize, keep: [id]}
outputs: {rows: {backend: parquet, path: "${run.output}/rows"}}
"""
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import treadle": [sys.executable, "-c", "import treadle"],
    "treadle --help": [TREADLE, "--help"],
    "treadle manifest check FILE": [TREADLE, "manifest", "check", "tokens.yaml"],
}


def median_seconds(command: list[str], folder: str, runs: int = 10) -> float:
    """The median wall time of a whole process."""
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tokens.yaml").write_text(MANIFEST)
        for name, command in COMMANDS.items():
            print(f"{name:28} {median_seconds(command, folder):.3f} s")


if __name__ == "__main__":
    main()
