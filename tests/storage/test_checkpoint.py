"""Runs that are killed, disturbed or repeated on one checkpoint."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.storage.checkpointed import PHASE, run, session_of, units_of, write_unit
from treadle.errors import ArgumentError, ArtifactError
from treadle.storage import Checkpoint, Session, UnitRecord, WorkUnit
from treadle.storage.checkpoint import records_in

Tree = Callable[[Path], dict[str, bytes]]
UNITS = units_of(3)


def begin(folder: Path, units: list[WorkUnit], **options: str) -> list[UnitRecord]:
    """Do some units and stop without a commit."""
    with session_of(folder, **options) as session:
        records = [write_unit(session.staging, unit) for unit in units]
        for record in records:
            session.accept(record)
    return records


@pytest.mark.parametrize(
    "mode",
    ["error", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("overwrite", "append"))],
)
def test_a_run_killed_at_any_operation_goes_on_to_the_same_bytes(tmp_path: Path, mode: str) -> None:
    """The promise of a checkpoint. It holds between two outputs that appear, and while it is removed."""
    child = Path(__file__).with_name("killed_checkpoint.py")
    done = subprocess.run(
        [sys.executable, str(child), str(tmp_path), mode], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_finished_units_are_not_done_again_and_the_checkpoint_goes_with_the_commit(
    tmp_path: Path, tree: Tree
) -> None:
    begin(tmp_path / "cut", UNITS[:2])
    assert not any((tmp_path / "cut" / name).exists() for name in ("rows", "table", "quarantine.jsonl"))
    assert run(tmp_path / "cut", UNITS)[0] == 1
    assert run(tmp_path / "whole", UNITS)[0] == 3
    assert tree(tmp_path / "cut") == tree(tmp_path / "whole")


def test_a_unit_that_moved_keeps_its_rows_and_takes_its_new_place(tmp_path: Path) -> None:
    """A file that came before the others since must not cost the work on them."""
    begin(tmp_path, [UNITS[0]])
    moved = WorkUnit("00007-in", 7, UNITS[0].source, 1, UNITS[0].identity)
    done, manifests = run(tmp_path, [moved])
    assert done == 0
    assert [each.name for each in manifests["rows"].files] == ["part-00007.jsonl"]


def test_a_unit_that_changed_or_has_no_identity_is_done_again(tmp_path: Path) -> None:
    nameless = WorkUnit("00001-x", 1, "x", 1)
    begin(tmp_path, [UNITS[0], nameless])
    assert run(tmp_path, [units_of(1, version=1)[0], nameless])[0] == 2


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _changed(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.mark.parametrize("damage", [_cut, _changed, Path.unlink, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("what", ["record", "rows", "table", "spill", "rejects"])
def test_a_damaged_unit_is_done_again(
    tmp_path: Path, tree: Tree, what: str, damage: Callable[[Path], None]
) -> None:
    records = begin(tmp_path / "cut", UNITS[:2])
    if what == "record":
        hurt = next((tmp_path / "cut" / ".checkpoint" / "units").iterdir())
    elif what == "rejects":
        assert records[0].rejected is not None
        hurt = Path(records[0].rejected.path)
    else:
        hurt = next(Path(each.path) for each in records[0].files if each.output == what)
    damage(hurt)
    # The last byte of a record closes its document, so no change of it leaves the record readable.
    assert run(tmp_path / "cut", UNITS)[0] == 2
    run(tmp_path / "whole", UNITS)
    assert tree(tmp_path / "cut") == tree(tmp_path / "whole")


def test_another_recipe_begins_anew_and_clears_what_was_kept(tmp_path: Path) -> None:
    [record] = begin(tmp_path, UNITS[:1])
    with session_of(tmp_path, fingerprint="other") as session:
        assert session.finished(PHASE, UNITS[0]) is None
        assert not any(Path(each.path).exists() for each in record.all_files)
    begin(tmp_path, UNITS[:1])
    with session_of(tmp_path, mode="append") as session:
        assert session.finished(PHASE, UNITS[0]) is None


def test_what_a_killed_writer_left_beside_finished_units_is_removed(tmp_path: Path) -> None:
    [record] = begin(tmp_path, UNITS[:1])
    left = Path(record.files[0].path).with_name("part-00001-0123.jsonl")
    left.write_bytes(b"{")
    with session_of(tmp_path):
        assert not left.exists()
        assert Path(record.files[0].path).exists()


def test_two_runs_on_one_checkpoint_are_refused_with_the_process(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        session.accept(write_unit(session.staging, UNITS[0]))
        with pytest.raises(
            ArtifactError, match=rf"another run has this checkpoint \(process {os.getpid()}\)"
        ):
            session_of(tmp_path)
        session.commit()
    assert (tmp_path / "rows").is_dir()


def test_one_may_look_into_a_checkpoint_while_runs_begin_and_end_there(tmp_path: Path) -> None:
    """A plan of a run says what is kept; it must not fail because a run is just starting."""
    ended = threading.Event()

    def looks() -> int:
        count = 0
        while not ended.is_set():
            records_in(tmp_path / ".checkpoint")
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(looks)
        try:
            for _ in range(30):
                begin(tmp_path, [UNITS[0]], mode="overwrite", fingerprint="of another recipe")
                run(tmp_path, UNITS[:1], mode="overwrite")
        finally:
            ended.set()
        assert looking.result() > 0


def commit_cut_after_the_first_output(folder: Path, units: list[WorkUnit]) -> None:
    """As if a process was killed between two outputs: the first is there, and the journal of the commit."""
    run(folder / "whole", units)
    with session_of(folder) as session:
        for unit in units:
            session.accept(write_unit(session.staging, unit))
        (folder / "table").write_text("in the way")
        with pytest.raises(ArtifactError, match="output 'table'"):
            session.commit()
    (folder / "table").unlink()
    shutil.copytree(folder / "whole" / "rows", folder / "rows")
    shutil.rmtree(folder / "whole")


def test_an_output_that_a_cut_commit_has_put_in_place_stands(tmp_path: Path) -> None:
    commit_cut_after_the_first_output(tmp_path, UNITS)
    inode = (tmp_path / "rows").stat().st_ino
    assert run(tmp_path, UNITS)[0] == 0
    assert (tmp_path / "rows").stat().st_ino == inode
    assert (tmp_path / "table").is_dir()


def test_an_output_of_a_cut_commit_whose_source_has_changed_since_is_made_anew(
    tmp_path: Path, tree: Tree
) -> None:
    commit_cut_after_the_first_output(tmp_path / "cut", UNITS)
    changed = units_of(3, version=1)
    run(tmp_path / "cut", changed)
    run(tmp_path / "whole", changed)
    assert tree(tmp_path / "cut") == tree(tmp_path / "whole")


def test_a_failing_commit_shows_nothing_also_of_what_a_cut_one_had_shown(tmp_path: Path) -> None:
    commit_cut_after_the_first_output(tmp_path, UNITS)
    with session_of(tmp_path) as session:
        for unit in UNITS:
            assert session.finished(PHASE, unit) is not None
        (tmp_path / "table").write_text("in the way")
        with pytest.raises(ArtifactError, match="output 'table'"):
            session.commit()
    assert not (tmp_path / "rows").exists()
    (tmp_path / "table").unlink()
    assert run(tmp_path, UNITS)[0] == 0


def test_a_checkpoint_elsewhere_than_on_this_machine_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"cannot keep a checkpoint at s3://b/c: expected a folder"):
        Session({}, checkpoint=Checkpoint("s3://b/c", "f"))


def test_units_written_in_several_processes_give_the_bytes_of_one(tmp_path: Path, tree: Tree) -> None:
    units = units_of(6)
    with session_of(tmp_path / "many") as session:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            for record in pool.map(write_unit, [session.staging] * len(units), units):
                session.accept(record)
        session.commit()
    run(tmp_path / "one", units)
    assert tree(tmp_path / "many") == tree(tmp_path / "one")


def test_a_record_comes_whole_out_of_json_and_pickle(tmp_path: Path) -> None:
    for record in begin(tmp_path, UNITS):
        assert UnitRecord.from_json(record.to_json()) == record
        assert pickle.loads(pickle.dumps(record)) == record


class CheckpointMachine(RuleBasedStateMachine):
    """Units are done, changed, damaged and committed in any order: a commit shows each as it is now."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="checkpointed-"))
        self.versions = [0, 0, 0]
        self.kept: set[tuple[int, int]] = set()
        self.fingerprint = "f"
        self.runs = 0

    def units(self) -> list[WorkUnit]:
        """The units as they are now."""
        return [units_of(3, version)[at] for at, version in enumerate(self.versions)]

    @rule(at=st.integers(0, 2))
    def do(self, at: int) -> None:
        """One unit, in a run that stops then."""
        with session_of(self.folder, fingerprint=self.fingerprint) as session:
            record = session.finished(PHASE, self.units()[at])
            assert (record is not None) == ((at, self.versions[at]) in self.kept)
            if record is None:
                session.accept(write_unit(session.staging, self.units()[at]))
        self.kept.add((at, self.versions[at]))

    @rule(at=st.integers(0, 2))
    def change(self, at: int) -> None:
        """The source of a unit."""
        self.versions[at] += 1

    @rule(at=st.integers(0, 2), cut=st.booleans())
    def damage(self, at: int, cut: bool) -> None:
        """A file of a unit."""
        if (at, self.versions[at]) in self.kept:
            with session_of(self.folder, fingerprint=self.fingerprint) as session:
                record = session.finished(PHASE, self.units()[at])
            assert record is not None
            (_cut if cut else Path.unlink)(Path(record.files[0].path))
            self.kept.discard((at, self.versions[at]))

    @rule()
    def commit(self) -> None:
        """A whole run."""
        done, manifests = run_with(self.folder, self.units(), self.fingerprint)
        assert done == sum((at, version) not in self.kept for at, version in enumerate(self.versions))
        text = "".join(each.read_text() for each in sorted((self.folder / "rows").glob("part-*")))
        assert [f'"of":"in-{at}:{version}"' in text for at, version in enumerate(self.versions)] == [True] * 3
        assert manifests == 9
        self.kept.clear()
        for name in ("rows", "table"):
            shutil.rmtree(self.folder / name)

    @rule()
    def other_recipe(self) -> None:
        """A unit of another recipe counts no longer."""
        self.runs += 1
        self.fingerprint = f"f{self.runs}"
        self.kept.clear()

    @invariant()
    def nothing_is_visible(self) -> None:
        """But after a commit, whose outputs `commit` takes away."""
        assert not (self.folder / "rows").exists()

    def teardown(self) -> None:
        """Leave nothing."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def run_with(folder: Path, units: list[WorkUnit], fingerprint: str) -> tuple[int, int]:
    """A whole run: the units it had to do, the rows of the first output."""
    done = 0
    with session_of(folder, fingerprint=fingerprint) as session:
        for unit in units:
            if session.finished(PHASE, unit) is None:
                session.accept(write_unit(session.staging, unit))
                done += 1
        return done, session.commit()["rows"].rows


TestCheckpointMachine = CheckpointMachine.TestCase
TestCheckpointMachine.settings = settings(
    max_examples=10, stateful_step_count=12, deadline=None, print_blob=True
)
