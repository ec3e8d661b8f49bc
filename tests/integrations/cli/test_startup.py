"""What a command loads. How many seconds that takes is measured in `bench/startup.py`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.manifest import read_starter, starters

LIBRARIES = {
    *("aiohttp", "asyncio", "cloudpickle", "fsspec", "multiprocessing", "numpy", "prometheus_client"),
    *("psutil", "psycopg", "pyarrow", "ray", "rensa", "rich", "s3fs", "sklearn", "tokenizers", "torch"),
}
ROOMS = {"treadle.artifacts", "treadle.execution", "treadle.experiment", "treadle.fray", "treadle.telemetry"}
PROGRAM = (
    "import sys; from treadle.integrations.cli.app import main\n"
    "code = main(sys.argv[1:])\n"
    "print(*sys.modules); sys.exit(code)"
)
EVERYTHING = """
drtml_version: 4
step_id: everything
run: {type: transform}
inputs:
  rows: {backend: csv, path: "rows/*.csv", options: {delimiter: ";"}}
transforms:
  - {name: normalize, columns: [text]}
  - {name: select, columns: [id, text]}
  - {name: rename, columns: {id: key}}
  - {name: length, min: 3}
  - {name: count_words}
  - {name: keep_if, column: words, at_least: 5}
  - {name: hash, columns: [text]}
  - {name: sample, fraction: 0.5}
  - {name: tokenize, keep: [key]}
  - {name: drop, columns: [key]}
outputs:
  rows: {backend: text, path: "${run.output}/rows"}
"""


def loaded_by(*arguments: str, cwd: Path) -> set[str]:
    """The modules that there are when the command has ended well."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("run_type", sorted(starters()))
def test_the_check_of_a_manifest_loads_no_table_and_no_worker(run_type: str, tmp_path: Path) -> None:
    """Editors ask for it after each change: one careless import and it takes twice as long."""
    text = read_starter(run_type, run_type)
    (tmp_path / "manifest.yaml").write_text(text)
    paths = [
        f"--param={name}=somewhere" for name in re.findall(r"^  (\w+): \{type: path", text, re.MULTILINE)
    ]
    loaded = loaded_by("manifest", "check", "manifest.yaml", *paths, cwd=tmp_path)
    assert not (LIBRARIES | ROOMS) & loaded


def test_the_options_of_formats_and_transforms_are_checked_without_tables(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text(EVERYTHING)
    assert not (LIBRARIES | ROOMS) & loaded_by("manifest", "check", "manifest.yaml", cwd=tmp_path)


@pytest.mark.parametrize("command", ["explain", "schema", "new"])
def test_what_reads_no_row_loads_no_table(command: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text(EVERYTHING)
    given = ["manifest.yaml"] if command == "explain" else []
    loaded = loaded_by("manifest", command, *given, cwd=tmp_path)
    assert not (LIBRARIES - {"rich"} | ROOMS) & loaded
