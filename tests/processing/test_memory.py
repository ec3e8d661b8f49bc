"""The peak memory of a run, measured in a process of its own, does not depend on how many rows there are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPT = """
import sys
from pathlib import Path

from treadle.processing import RunContext, run_from_manifest

outcome = run_from_manifest(sys.argv[1], RunContext.create("step", sys.argv[2]))
# Not `ru_maxrss`, which begins with the memory of the process that started this one.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(outcome.counters.rows_out, status["VmHWM"].split()[0])
"""
MANIFEST = """
drtml_version: 4
step_id: step
run: {{type: transform}}
inputs:
  rows: {{backend: {reads}, path: "{source}"}}
transforms:
  - {{name: normalize, columns: [text], lowercase: true}}
outputs:
  rows: {{backend: {reads}, path: "{out}"}}
"""
ROW_BYTES = 2000
FEW, MANY = 5_000, 50_000


@pytest.mark.parametrize(("reads", "most"), [("jsonl", 1.15), ("parquet", 1.35)])
def test_ten_times_the_rows_take_no_more_memory(tmp_path: Path, reads: str, most: float) -> None:
    """What waits between the stages, and what a format holds of a file, is bounded in bytes."""
    few, many = (_peak(tmp_path / str(count), reads, count) for count in (FEW, MANY))
    assert many < most * few


def _peak(folder: Path, reads: str, count: int) -> int:
    """In KiB."""
    folder.mkdir()
    source = folder / f"rows.{reads}"
    _WRITERS[reads](source, count)
    manifest = folder / "manifest.yaml"
    manifest.write_text(MANIFEST.format(reads=reads, source=source, out=folder / "out"))
    words = [sys.executable, "-c", SCRIPT, str(manifest), str(folder / "run")]
    told = subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout
    rows, peak = map(int, told.split())
    assert rows == count
    return peak


def _texts(count: int) -> Iterator[str]:
    return (f"Row “{at:08d}” {'Word ' * (ROW_BYTES // 5)}" for at in range(count))


def _write_jsonl(path: Path, count: int) -> None:
    with path.open("wb") as file:
        for text in _texts(count):
            file.write(orjson.dumps({"text": text}) + b"\n")


def _write_parquet(path: Path, count: int) -> None:
    pq.write_table(pa.table({"text": list(_texts(count))}), path)


_WRITERS = {"jsonl": _write_jsonl, "parquet": _write_parquet}
