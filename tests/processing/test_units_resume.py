"""A run that was killed goes on where it was, and ends as if nothing had happened."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.processing.resuming import (
    INPROCESS,
    contents,
    kill,
    killing,
    run,
    start,
    write_manifest,
    write_shard,
    write_shards,
)
from treadle.ext import RunContext
from treadle.processing import RunOutcome
from treadle.processing.compile import checkpoint_path

PROCESSES = "backend: processes, workers: 2"
MORE = "backend: processes, workers: 3, assign: static"
UNITS = 12


def undisturbed(root: Path, rows: Path, transform: str | None = None) -> Mapping[str, bytes]:
    """What a run without a checkpoint, that nobody kills, makes of these rows."""
    folder = root / "undisturbed"
    folder.mkdir()
    more = {} if transform is None else {"transform": transform}
    run(write_manifest(folder, checkpoint=False, **more), rows, folder / "out")
    return contents(folder / "out")


def kept_units(out: Path) -> int:
    """How many files the checkpoint has."""
    folder = Path(checkpoint_path(RunContext.create("step", out)))
    return sum(path.is_file() for path in folder.rglob("*")) if folder.is_dir() else 0


def run_and_kill(manifest: Path, rows: Path, out: Path, *, at: int = 0, seconds: float = 0.0) -> None:
    """Kill the run when its checkpoint has `at` files, and so many seconds after that."""
    process = start(manifest, rows, out)
    while process.poll() is None and kept_units(out) < at:
        time.sleep(0.001)  # nothing tells another process about a file
    time.sleep(seconds)
    kill(process)


def done_before(outcome: RunOutcome) -> list[str]:
    return [each.unit.id for each in outcome.units if each.resumed]


@pytest.mark.parametrize(
    ("first", "at", "again"),
    [(INPROCESS, 2, PROCESSES), (INPROCESS, 6, INPROCESS), (PROCESSES, 4, INPROCESS), (PROCESSES, 8, MORE)],
)
def test_a_killed_run_resumes_to_the_same_files(tmp_path: Path, first: str, at: int, again: str) -> None:
    """Also on another backend, or with other workers: these play no part in a file."""
    rows, out = tmp_path / "in", tmp_path / "out"
    write_shards(rows, UNITS)
    run_and_kill(write_manifest(tmp_path, first), rows, out, at=at)
    outcome = run(write_manifest(tmp_path, again), rows, out)
    assert contents(out) == undisturbed(tmp_path, rows)
    assert outcome.counters.rows_in == UNITS * 21
    assert not list(out.glob(".*")), "the checkpoint and all that was staged are gone"


@pytest.fixture
def cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that killed itself in its sixth unit of eight, after five were done."""
    monkeypatch.setenv("TREADLE_PLUGINS", "tests.processing.killer_plugin")
    rows = tmp_path / "in"
    write_shards(rows, 8)
    manifest = write_manifest(tmp_path, transform=killing(tmp_path, "'0 of 5'"))
    process = start(manifest, rows, tmp_path / "out")
    assert process.wait() == -9
    return manifest


def test_what_was_done_is_not_done_again(tmp_path: Path, cut_short: Path) -> None:
    """The account says which units were done before; the sums are those of all."""
    outcome = run(cut_short, tmp_path / "in", tmp_path / "out")
    assert done_before(outcome) == [f"{n:05d}-s{n:03d}" for n in range(5)]
    assert outcome.counters.rows_in == 8 * 21
    assert [each.unit.index for each in outcome.units if not each.resumed] == [5, 6, 7]


def test_an_added_file_moves_the_others_without_doing_them_again(tmp_path: Path, cut_short: Path) -> None:
    """A unit is known by its content, not by its place among the others."""
    rows = tmp_path / "in"
    write_shard(rows, 0).rename(rows / "a-first.jsonl")
    write_shard(rows, 0)
    outcome = run(cut_short, rows, tmp_path / "out")
    assert done_before(outcome) == [f"{n + 1:05d}-s{n:03d}" for n in range(1, 5)], "s000 was written anew"
    assert contents(tmp_path / "out") == undisturbed(tmp_path, rows, section(cut_short.read_text()))


def test_a_removed_and_a_changed_file(tmp_path: Path, cut_short: Path) -> None:
    """Nothing of a file that is gone or was another one may be seen."""
    rows = tmp_path / "in"
    (rows / "s001.jsonl").unlink()
    write_shard(rows, 3, rows=9, word="changed")
    outcome = run(cut_short, rows, tmp_path / "out")
    assert done_before(outcome) == ["00000-s000", "00001-s002", "00003-s004"]
    assert contents(tmp_path / "out") == undisturbed(tmp_path, rows, section(cut_short.read_text()))


def test_another_setting_begins_anew(tmp_path: Path, cut_short: Path) -> None:
    """Rows made under two settings must never lie in one output."""
    cut_short.write_text(cut_short.read_text().replace("batch_rows: 3", "batch_rows: 4"))
    assert done_before(run(cut_short, tmp_path / "in", tmp_path / "out")) == []


def test_a_setting_that_changes_no_row_begins_nothing_anew(tmp_path: Path, cut_short: Path) -> None:
    cut_short.write_text(cut_short.read_text() + "runtime: {metrics_enabled: true}\n")
    assert len(done_before(run(cut_short, tmp_path / "in", tmp_path / "out"))) == 5


def section(manifest: str) -> str:
    """The lines of a manifest that `write_manifest` calls the transform."""
    return "\n".join(line for line in manifest.splitlines() if line.startswith(("transform:", "outputs:")))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_runs_that_are_killed_again_and_again_end_the_same(tmp_path: Path, seed: int) -> None:
    """At any moment, also while it begins, while it commits, and while a worker writes."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows, out = tmp_path / "in", tmp_path / "out"
    write_shards(rows, UNITS, rows=200)
    for _ in range(chance.randint(1, 4)):
        backend = chance.choice([INPROCESS, PROCESSES, MORE])
        at, seconds = chance.choice([0, chance.randint(1, UNITS)]), chance.random() * 0.6
        run_and_kill(write_manifest(tmp_path, backend), rows, out, at=at, seconds=seconds)
        if (out / "rows").exists():
            break
        if chance.random() < 0.5:
            write_shard(rows, chance.randrange(UNITS + 3), rows=chance.randint(0, 99), word="new")
    # Outputs appear one after the other: while the checkpoint is there, a commit has to be carried through.
    if not (out / "rows").exists() or list(out.glob(".*checkpoint")):
        run(write_manifest(tmp_path, chance.choice([INPROCESS, PROCESSES])), rows, out)
    # A kill after the end of the checkpoint may leave hidden files, which count for nothing.
    shown = {name: content for name, content in contents(out).items() if not name.startswith(".")}
    assert shown == undisturbed(tmp_path, rows)
