"""Disks that fail and stores that vanish: what is said then, and that the next run heals."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from treadle.artifacts import Store, open_store
from treadle.artifacts.verify import verify
from treadle.errors import StepsFailedError, TreadleError
from treadle.execution import StepRunner, StepSpec
from treadle.testing import temporary_store


def step(prefix: str, name: str = "a", size: int = 3, deps: tuple[StepSpec, ...] = ()) -> StepSpec:
    """A step that writes that many bytes and returns its name."""

    def fn(path: str) -> str:
        Path(path, "out.bin").write_bytes(b"x" * size)
        return name

    return StepSpec(name, fn, deps, output_path_prefix=prefix)


def is_served(spec: StepSpec) -> None:
    """A run gives the value, and all is in order."""
    assert StepRunner().run([spec])[spec.id] == spec.name
    assert list(verify(open_store(str(spec.output_path_prefix)))) == []


@pytest.fixture
def store() -> Iterator[Store]:
    with temporary_store() as store:
        yield store


def failure(steps: list[StepSpec]) -> str:
    """What a run of these says when it fails; empty when it does not."""
    try:
        StepRunner().run(steps)
    except TreadleError as error:
        return str(error)
    return ""


# Disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 megabytes: the log of a ledger may take 16."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount a disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_fails_the_step_and_a_run_after_it_heals(small_disk: Path) -> None:
    large = step(str(small_disk / "store"), size=30_000_000)
    with pytest.raises(StepsFailedError, match="No space left on device"):
        StepRunner().run([large])
    assert not Path(large.output_path).exists()
    assert list(Path(small_disk, "store", ".treadle", "work").iterdir()) == []
    is_served(step(str(small_disk / "store"), size=10))
    open_store(str(small_disk / "store")).ledger.close()


@pytest.mark.parametrize("room", [0, 20_000, 60_000, 100_000, 200_000])
def test_a_disk_without_room_for_the_ledger_is_told(
    small_disk: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that could not be given back, for want of room, runs out like any other."""
    monkeypatch.setenv("TREADLE_LEASE_SECONDS", "1")
    prefix = small_disk / "store"
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    with filler.open("r+b") as file:
        file.truncate(filler.stat().st_size - room)
    steps = [step(str(prefix), f"s{n}", 10) for n in range(40)]
    told = failure(steps)
    assert not told or str(prefix) in told
    assert not told or any(words in told for words in ("full", "No space left", "has space left"))
    assert told or room >= 100_000
    filler.unlink()
    assert not failure(steps)
    is_served(steps[-1])
    open_store(str(prefix)).ledger.close()


LIMITED = """
import resource, sys
from pathlib import Path
from treadle.execution import StepRunner, StepSpec

def fn(path):
    Path(path, "out.bin").write_bytes(bytes(300_000))

import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
StepRunner().run([StepSpec("a", fn, output_path_prefix=sys.argv[1])])
"""


@pytest.mark.parametrize("limit", [1_000, 50_000, 200_000])
def test_files_that_may_not_grow_are_told_and_a_run_without_the_limit_heals(
    tmp_path: Path, limit: int
) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != limit
    prefix = str(tmp_path / "store")
    command = [sys.executable, "-c", LIMITED, prefix, str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()
    assert any("File too large" in line or "disk" in line for line in last), done.stderr
    is_served(step(prefix))


@pytest.mark.parametrize("place", ["", ".treadle", ".treadle/ledger.db", "a", ".treadle/work"])
def test_a_file_or_folder_in_the_way_is_told_by_its_path_and_gone_it_heals(
    tmp_path: Path, place: str
) -> None:
    """Root may write anywhere, so what cannot be written to is something of the wrong kind."""
    prefix = tmp_path / "store"
    wrong = prefix / place if place else prefix
    wrong.parent.mkdir(parents=True, exist_ok=True)
    wrong.mkdir() if place.endswith("db") else wrong.touch()
    spec = step(str(prefix))
    with pytest.raises(TreadleError) as caught:
        StepRunner().run([spec])
    assert str(wrong) in str(caught.value)
    wrong.rmdir() if wrong.is_dir() else wrong.unlink()
    is_served(spec)


READ_ONLY = """
import os, sys
from treadle.errors import TreadleError
from treadle.execution import StepRunner, StepSpec
from treadle.testing import temporary_store

def run(prefix):
    return dict(StepRunner().run([StepSpec("a", lambda path: 1, output_path_prefix=prefix)]))

with temporary_store() as store:  # so that all that is imported on the way is there
    run(store.prefix)
os.setgid(65534)
os.setuid(65534)
try:
    print(run(sys.argv[1]))
except TreadleError as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_store_that_can_only_be_read_serves_what_is_done_and_else_says_so() -> None:
    """With a build in it, it serves that: nothing is written when nothing has to run.

    The last one to close a ledger removes what SQLite needs beside it; whoever is killed leaves it.
    """
    with temporary_store() as store:
        prefix = Path(store.prefix)
        prefix.parent.chmod(0o755)
        prefix.mkdir(mode=0o755)
        command = [sys.executable, "-c", READ_ONLY, str(prefix)]

        def told() -> str:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        assert told().startswith("LedgerError")
        assert str(prefix) in told()
        assert "allow this user to write there" in told()
        built = step(str(prefix))
        is_served(built)
        log = Path(prefix, ".treadle/ledger.db-wal")
        assert log.exists()
        assert told() == f"{{'{built.id}': 'a'}}\n"
        store.ledger.close()
        assert not log.exists()
        assert told() == f"{{'{built.id}': 'a'}}\n"
        store.forget(built.output_path)
        store.ledger.close()
        assert "allow this user to write there" in told()


# Stores that change under a run


def test_a_store_that_is_deleted_in_the_middle_of_a_run_fails_it_and_the_next_run_heals(store: Store) -> None:
    def fn(path: str) -> str:
        shutil.rmtree(store.prefix)
        return "gone"

    first = StepSpec("gone", fn, output_path_prefix=store.prefix)
    second = step(store.prefix, "after", deps=(first,))
    with pytest.raises(TreadleError) as caught:
        StepRunner().run([second])
    assert store.prefix in str(caught.value)
    assert not Path(first.output_path).exists()
    is_served(step(store.prefix, "after"))


def test_a_store_that_is_deleted_between_runs_is_built_anew(store: Store) -> None:
    spec = step(store.prefix)
    is_served(spec)
    shutil.rmtree(store.prefix)
    is_served(spec)
    assert Path(spec.output_path, "out.bin").exists()


def test_an_output_that_is_deleted_before_its_dependent_reads_it_fails_that_and_the_next_run_heals(
    store: Store,
) -> None:
    first = step(store.prefix, "first")
    is_served(first)

    def remove(path: str) -> None:
        if not Path(store.prefix, "between").exists():
            shutil.rmtree(first.output_path)
        Path(path, "mark").touch()

    def read(path: str) -> bytes | str:
        return Path(first.output_path, "out.bin").read_text()

    between = StepSpec("between", remove, output_path_prefix=store.prefix)
    after = StepSpec("after", read, [first, between], output_path_prefix=store.prefix)
    with pytest.raises(StepsFailedError, match=first.output_path):
        StepRunner().run([after, first])
    assert StepRunner().run([after, first])[after.id] == "xxx"
