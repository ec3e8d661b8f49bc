"""The main job as a user starts it: whole, killed, and started again."""

import hashlib
import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_000)]

TREADLE = Path(sys.executable).with_name("treadle")


def demo(folder: Path) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    command: list[str | Path] = [
        TREADLE,
        "demo",
        "--store",
        folder / "store",
        "--report",
        folder / "report.html",
    ]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(folder: Path) -> str:
    process = demo(folder)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert (folder / "report.html").stat().st_size > 100_000
    return output


def kill_in(step: str, folder: Path, after: float) -> None:
    """Start the demo and kill it some time after the step has started."""
    process = demo(folder)
    assert process.stdout is not None
    for line in process.stdout:
        if re.search(rf"\b{step}-\w+  started", line):
            break
    else:
        pytest.fail(f"{step} never started")
    # The moment of a kill is the point of this test; nothing is waited for.
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def artifacts(folder: Path) -> dict[str, object]:
    """Every file of an output: its checksum, or what it says but for what was measured.

    What treadle keeps for itself holds times.
    """
    store = folder / "store"
    return {
        str(path.relative_to(store)): _unmeasured(path)
        if path.is_relative_to(store / "names")
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(store.rglob("*"))
        if path.is_file() and ".treadle" not in path.parts
    }


def _unmeasured(path: Path) -> object:
    """The model's answers say how long each took: in a column, and in the sums and sizes that follow."""
    if path.suffix == ".parquet":
        return pq.read_table(path).drop_columns(["seconds"]).to_pylist()
    measured = {"engine_milliseconds", "bytes", "sha256"}
    return json.loads(
        path.read_bytes(),
        object_hook=lambda found: {key: value for key, value in found.items() if key not in measured},
    )


def test_a_demo_killed_three_times_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    # Both in one place: the account of a run names the files that it read.
    killed, undisturbed = tmp_path / "demo", tmp_path / "undisturbed"
    finish(killed)
    killed.rename(undisturbed)
    for step in ("tokens", "word_vectors", "names"):
        kill_in(step, killed, after=chance.uniform(0, 2))
    finish(killed)
    assert artifacts(killed) == artifacts(undisturbed)
    assert "12 cached" in finish(killed)
