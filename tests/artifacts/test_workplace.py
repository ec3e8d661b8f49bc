"""Bodies write where nobody looks, and what they wrote appears whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from treadle.artifacts import FileEntry, Store, open_store
from treadle.artifacts.verify import verify
from treadle.artifacts.workplace import LocalWorkplace, WorkFolder, open_workplace
from treadle.errors import StepError
from treadle.execution import StepRunner, StepSpec
from treadle.testing import memory_store

Build = Callable[..., StepSpec]
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def place(prefix: str) -> LocalWorkplace:
    return LocalWorkplace(prefix)


def written(work: WorkFolder, text: str = "new") -> WorkFolder:
    Path(work.path, "out.txt").write_text(text)
    work.files()
    return work


def test_what_was_written_is_published_by_one_rename(place: LocalWorkplace, prefix: str) -> None:
    work = place.open(f"{prefix}/a/f")
    folder = Path(work.path)
    assert folder.parent == Path(prefix, ".treadle", "work")
    (folder / "deep").mkdir()
    (folder / "deep" / "b").touch()
    (folder / "a").write_text("x")
    inode = folder.stat().st_ino
    assert work.files() == (
        FileEntry("a", 1, "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"),
        FileEntry("deep/b", 0, f"sha256:{EMPTY}"),
    )
    assert not Path(prefix, "a").exists()
    work.publish()
    work.close()
    assert Path(prefix, "a", "f").stat().st_ino == inode
    assert place.stand(f"{prefix}/a/f", [FileEntry("a", 1, ""), FileEntry("deep/b", 0, "")])
    assert list(folder.parent.iterdir()) == []


def test_a_new_output_takes_the_place_of_the_former_whole(place: LocalWorkplace, prefix: str) -> None:
    output = Path(prefix, "a", "f")
    for name in ("one", "two"):
        work = place.open(str(output))
        Path(work.path, name).touch()
        work.files()
        work.publish()
        work.close()
        assert [each.name for each in output.iterdir()] == [name]
    assert [each.name for each in output.parent.iterdir()] == ["f"]


def test_an_attempt_that_wrote_nothing_clears_what_was_there(place: LocalWorkplace, prefix: str) -> None:
    output = Path(prefix, "a", "f")
    output.mkdir(parents=True)
    (output / "old").touch()
    work = place.open(str(output))
    assert work.files() == ()
    work.publish()
    work.close()
    assert not output.exists()


def test_what_is_not_published_vanishes(place: LocalWorkplace, prefix: str) -> None:
    work = written(place.open(f"{prefix}/a/f"))
    work.close()
    assert not Path(work.path).exists()
    assert not Path(prefix, "a").exists()


def test_an_empty_folder_is_used_again_and_never_two_at_a_time(place: LocalWorkplace, prefix: str) -> None:
    first, second = place.open(f"{prefix}/a/f"), place.open(f"{prefix}/b/f")
    assert first.path != second.path
    first.files()
    first.close()
    third = place.open(f"{prefix}/c/f")
    assert third.path == first.path
    written(third).close()
    assert place.open(f"{prefix}/d/f").path not in (first.path, second.path)


def test_tidy_removes_the_folders_that_were_kept(place: LocalWorkplace, prefix: str) -> None:
    used, kept = place.open(f"{prefix}/a/f"), place.open(f"{prefix}/b/f")
    kept.files()
    kept.close()
    place.tidy()
    assert [str(each) for each in Path(prefix, ".treadle", "work").iterdir()] == [used.path]


def test_a_body_that_removes_its_folder_is_told(place: LocalWorkplace, prefix: str) -> None:
    work = place.open(f"{prefix}/a/f")
    Path(work.path).rmdir()
    with pytest.raises(StepError, match="must not remove or replace it"):
        work.files()
    work.close()


def test_a_place_of_its_own_is_filled_from_beside_it(place: LocalWorkplace, tmp_path: Path) -> None:
    """It may lie on another disk, and no rename leads from one disk to another."""
    output = tmp_path / "elsewhere" / "out"
    work = place.open(str(output))
    assert Path(work.path).parent == output.parent
    assert Path(work.path).name.startswith(".out.")
    written(work).publish()
    work.close()
    assert [each.name for each in output.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("link", [False, True])
def test_a_link_or_a_file_in_the_way_is_replaced_and_not_followed(
    place: LocalWorkplace, prefix: str, tmp_path: Path, link: bool
) -> None:
    output = Path(prefix, "a", "f")
    output.parent.mkdir(parents=True)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    output.symlink_to(tmp_path / "precious") if link else output.touch()
    work = written(place.open(str(output)))
    work.publish()
    work.close()
    assert [each.name for each in output.iterdir()] == ["out.txt"]
    assert (tmp_path / "precious" / "file").exists()


def test_links_in_a_folder_count_as_the_files_that_they_lead_to(place: LocalWorkplace, prefix: str) -> None:
    work = place.open(f"{prefix}/a/f")
    Path(work.path, "file").write_text("x")
    Path(work.path, "link").symlink_to("file")
    Path(work.path, "folder").symlink_to("/")
    Path(work.path, "broken").symlink_to("nowhere")
    assert [(each.path, each.bytes) for each in work.files()] == [("file", 1), ("link", 1)]


@pytest.mark.parametrize(
    ("change", "stands"),
    [
        (lambda file: None, True),
        (lambda file: file.write_text("old"), True),
        (lambda file: file.write_text("longer"), False),
        (lambda file: file.unlink(), False),
        (lambda file: (file.unlink(), file.mkdir()), False),
        (lambda file: (file.unlink(), file.symlink_to(file.name)), False),
        (lambda file: (file.unlink(), file.parent.rmdir(), file.parent.touch()), False),
    ],
    ids=["same", "content", "size", "gone", "folder", "loop", "no folder"],
)
def test_files_stand_with_their_sizes(
    place: LocalWorkplace, tmp_path: Path, change: Callable[[Path], object], stands: bool
) -> None:
    file = tmp_path / "out" / "a"
    file.parent.mkdir()
    file.write_text("new")
    change(file)
    assert place.stand(str(file.parent), [FileEntry("a", 3, "")]) is stands


LEAVER = """
import os, sys, time
from treadle.artifacts.workplace import LocalWorkplace
print(LocalWorkplace(sys.argv[1]).open(sys.argv[1] + "/a/f").path, flush=True)
sys.stdin.read()
"""


def test_what_dead_processes_left_is_swept_and_not_what_living_ones_use(
    place: LocalWorkplace, prefix: str
) -> None:
    command = [sys.executable, "-c", LEAVER, prefix]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        (theirs / "file").touch()
        mine = Path(place.open(f"{prefix}/b/f").path)
        strange = Path(prefix, ".treadle", "work", ".DS_Store")
        strange.touch()
        place.sweep()
        assert theirs.exists()
        other.send_signal(signal.SIGKILL)
        other.wait()
        place.sweep()
    assert not theirs.exists()
    assert mine.exists()
    assert strange.exists()


def test_a_store_without_a_folder_is_swept_without_making_one(place: LocalWorkplace, prefix: str) -> None:
    place.sweep()
    assert not Path(prefix).exists()


def test_a_fork_does_not_use_the_free_folders_of_its_parent(place: LocalWorkplace, prefix: str) -> None:
    work = place.open(f"{prefix}/a/f")
    work.files()
    work.close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, place.open(f"{prefix}/a/f").path.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        theirs = pipe.read()
    assert theirs
    assert theirs != work.path
    assert place.open(f"{prefix}/a/f").path == work.path


def test_a_store_that_was_moved_serves_what_it_has(store: Store, tmp_path: Path) -> None:
    def fn(path: str) -> dict[str, object]:
        Path(path, "x").write_text("x")
        return {"folder": path, "file": Path(path, "x")}

    def spec(prefix: str) -> StepSpec:
        return StepSpec("a", fn, output_path_prefix=prefix)

    first = spec(store.prefix)
    StepRunner().run([first])
    store.ledger.close()
    moved = str(tmp_path / "moved")
    Path(store.prefix).rename(moved)
    step = spec(moved)
    results = StepRunner().run([step])
    assert [type(each.outcome).__name__ for each in results.outcomes.values()] == ["Cached"]
    assert results[step.id] == {"folder": step.output_path, "file": Path(step.output_path, "x")}
    assert list(verify(open_store(moved))) == []


def test_a_folder_on_an_object_store_stays_where_it_was_filled() -> None:
    with memory_store() as store:
        place = open_workplace(store.prefix)
        work = place.open(f"{store.prefix}/a/f")
        assert work.path == f"{store.prefix}/a/f/{work.location}"
        assert work.path.startswith(f"{store.prefix}/a/f/")
        assert work.files() == ()
        with fsspec.open(f"{work.path}/deep/x", "w") as file:
            file.write("x")
        assert [(each.path, each.bytes) for each in work.files()] == [("deep/x", 1)]
        assert place.stand(work.path, work.files())
        work.publish()
        work.close()
        assert place.stand(work.path, [FileEntry("deep/x", 1, "")])
        assert not place.stand(work.path, [FileEntry("deep/x", 2, "")])
        lost = place.open(f"{store.prefix}/a/f")
        with fsspec.open(f"{lost.path}/y", "w") as file:
            file.write("y")
        lost.close()
        assert lost.files() == ()
        place.sweep()
        place.tidy()
