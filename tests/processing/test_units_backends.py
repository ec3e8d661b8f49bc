"""The units of a run on every backend: the same files, the same errors, and what a lost worker costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError  # type: ignore[import-untyped]

from tests.processing.resuming import (
    INPROCESS,
    contents,
    killing,
    run,
    write_manifest,
    write_shards,
)
from treadle.errors import BadRowError, RunError
from treadle.ext import RunContext
from treadle.processing.compile import account_path, checkpoint_path
from treadle.processing.unit_run import read_errors_placed
from treadle.storage import RowBatch, WorkUnit

PROCESSES = "backend: processes, workers: 2"
BACKENDS = [
    "backend: processes, workers: 1",
    "backend: processes, workers: 3, assign: static",
    PROCESSES,
]

FAILING = """
    run: {type: transform}
    inputs: {rows: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    transforms: [{name: map, entry: "tests.processing.row_functions:needs_memory"}]
    outputs: {rows: {backend: jsonl, path: rows}}
    parallelism: {backend: BACKEND, workers: 1}
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    write_shards(tmp_path / "in", 7)
    return tmp_path / "in"


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_PLUGINS", "tests.processing.killer_plugin")


def check_same_files(tmp_path: Path, rows: Path, backend: str) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    one = run(write_manifest(tmp_path, checkpoint=False), rows, here)
    other = run(write_manifest(tmp_path, backend, checkpoint=False), rows, there)
    assert contents(here) == contents(there)
    assert one.counters == other.counters
    assert [each.unit.id for each in one.units] == [each.unit.id for each in other.units]


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_processes_give_the_same_bytes(tmp_path: Path, rows: Path, backend: str) -> None:
    """Where a unit is worked on, and beside which others, plays no part in its file."""
    check_same_files(tmp_path, rows, backend)


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize("assign", ["pull", "static"])
def test_ray_gives_the_same_bytes(tmp_path: Path, rows: Path, assign: str) -> None:
    check_same_files(tmp_path, rows, f"backend: ray, workers: 2, assign: {assign}")


@pytest.mark.usefixtures("killer")
def test_a_killed_worker_costs_its_unit_one_more_try(tmp_path: Path, rows: Path) -> None:
    """A lost machine is no fault of the rows: the result is that of a run that lost none."""
    transform = killing(tmp_path, "'17 of 3'")
    run(write_manifest(tmp_path, PROCESSES, transform=transform), rows, tmp_path / "out")
    assert [path.name for path in (tmp_path / "marks").iterdir()] == ["0"], "it was killed"
    run(write_manifest(tmp_path, INPROCESS, transform=transform), rows, tmp_path / "again")
    assert contents(tmp_path / "out") == contents(tmp_path / "again")


@pytest.mark.usefixtures("killer")
def test_a_unit_that_kills_every_worker_is_named_and_the_others_are_kept(tmp_path: Path, rows: Path) -> None:
    """One bad file must not cost a night of work, nor be looked for among thousands."""
    manifest = write_manifest(tmp_path, PROCESSES, transform=killing(tmp_path, "'17 of 3'", times=99))
    out = tmp_path / "out"
    with pytest.raises(
        RunError, match=r"step step: unit 00003-s003 .*s003\.jsonl\) ended 3 workers"
    ) as caught:
        run(manifest, rows, out)
    assert "the other units are kept in the checkpoint" in str(caught.value)
    assert "leave it out of the inputs" in str(caught.value)
    (rows / "s003.jsonl").unlink()
    outcome = run(manifest, rows, out)
    assert [each.resumed for each in outcome.units] == [True] * 6


@pytest.mark.parametrize("backend", [INPROCESS, PROCESSES])
def test_the_first_bad_row_in_order_is_the_one_that_fails_the_run(
    tmp_path: Path, rows: Path, backend: str
) -> None:
    """Whoever mends one row after the other sees them in the order of the files."""
    manifest = write_manifest(tmp_path, backend)
    manifest.write_text(manifest.read_text().replace("on_bad_row: quarantine", "on_bad_row: fail"))
    with pytest.raises(BadRowError) as caught:
        run(manifest, rows, tmp_path / "out")
    assert (caught.value.source, caught.value.line) == (str(rows / "s000.jsonl"), 21)
    assert caught.value.kind == "not-json"
    assert not (tmp_path / "out/rows").exists()


@pytest.mark.parametrize("fault", ["a bad row", "no memory"])
def test_an_error_says_the_same_wherever_the_unit_was_worked_on(
    workshop: Any, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word of how a unit looks inside; those of the file and its lines are there already."""
    monkeypatch.setenv("TREADLE_TEST_SCARCE", str(workshop.root))
    workshop.rows("a", [{"n": 1}, "torn" if fault == "a bad row" else {"n": 2}])
    told = []
    for backend in ("inprocess", "processes"):
        with pytest.raises(BadRowError if fault == "a bad row" else MemoryError) as caught:
            workshop.run(FAILING.replace("BACKEND", backend))
        told.append([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert told[0] == told[1]
    assert f"{workshop.root}/in/a.jsonl" in " ".join(told[0])
    assert "WorkUnit" not in " ".join(told[0])


def test_a_storage_that_lets_a_worker_not_in_is_told_with_the_unit() -> None:
    """What its client raises is no OSError, and says nothing of what was to be read."""

    def batches() -> Iterator[RowBatch]:
        yield RowBatch((), "s3://b/a.jsonl")
        raise NoCredentialsError

    unit = WorkUnit("00000-a", 0, "s3://b/a.jsonl", 1)
    with pytest.raises(RunError, match=r"unit 00000-a: s3://b/a\.jsonl cannot be read: Unable to locate"):
        list(read_errors_placed(batches(), unit))


@pytest.mark.parametrize("backend", [INPROCESS, PROCESSES])
def test_bad_rows_are_counted_over_all_units(tmp_path: Path, rows: Path, backend: str) -> None:
    """Each unit alone is below the limit. All that led to the end can be looked at."""
    manifest = write_manifest(tmp_path, backend)
    manifest.write_text(
        manifest.read_text().replace("on_bad_row: quarantine", "on_bad_row: quarantine, max_bad_rows: 3")
    )
    with pytest.raises(RunError, match=r"4 of 84 rows read are bad, errors\.max_bad_rows allows 3"):
        run(manifest, rows, tmp_path / "out")
    kept = (tmp_path / "out/step.quarantine.jsonl").read_text().splitlines()
    assert [Path(json.loads(line)["source"]).stem for line in kept] == ["s000", "s001", "s002", "s003"]
    assert not (tmp_path / "out/rows").exists()


@pytest.mark.parametrize("backend", [INPROCESS, PROCESSES])
@pytest.mark.parametrize("lost", [False, True])
def test_rows_without_a_needed_column_are_rejected(tmp_path: Path, backend: str, lost: bool) -> None:
    """One shard of another make must not cost the rest, and must not be lost in silence."""
    folder = tmp_path / "in"
    write_shards(folder, 1)
    (folder / "s001.jsonl").write_text('{"id": "x", "body": "no text"}\n')
    manifest = write_manifest(tmp_path, backend)
    if lost:
        manifest.write_text(manifest.read_text().replace("on_bad_row: quarantine", "on_bad_row: skip"))
    outcome = run(manifest, folder, tmp_path / "out")
    assert (outcome.counters.rows_in, outcome.counters.rejected) == (22, 2)


def test_the_closing_account_has_every_unit(tmp_path: Path, rows: Path) -> None:
    """In = out + filtered + rejected, for each unit and in all, in a file that stays."""
    outcome = run(write_manifest(tmp_path, PROCESSES), rows, tmp_path / "out")
    path = account_path(RunContext.create("step", tmp_path / "out"))
    assert outcome.account == path
    account = json.loads(Path(path).read_text())
    assert [each["unit"] for each in account["units"]] == [f"{n:05d}-s{n:03d}" for n in range(7)]
    for each in [account["total"], *account["units"]]:
        assert each["rows_in"] == each["rows_out"] + each["filtered"] + each["rejected"]
    assert account["total"]["rows_in"] == 7 * 21
    assert account["total"]["rejected"] == 7


def test_no_checkpoint_is_left_by_a_run_that_finished(tmp_path: Path, rows: Path) -> None:
    run(write_manifest(tmp_path, PROCESSES), rows, tmp_path / "out")
    assert not Path(checkpoint_path(RunContext.create("step", tmp_path / "out"))).exists()
    assert not list((tmp_path / "out").glob(".*"))
