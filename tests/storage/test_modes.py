"""What becomes of a local output that is there already: refused, replaced at once, or appended to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage import publishing
from tests.storage.publishing import manifest_of, publish, read, spec_of, staged
from treadle.errors import ArtifactError, RunError
from treadle.storage.output_manifest import read_output_manifest
from treadle.storage.target import Target, target_for

Tree = Callable[[Path], dict[str, bytes]]
MODES = ["error", "overwrite", "append"]
SCRIPT = str(Path(publishing.__file__))
KILLER = str(Path(__file__).with_name("killed_writer.py"))


def prepared(path: Path, mode: str) -> Target:
    target = target_for("out", spec_of(path, mode))
    target.prepare()
    return target


def put(target: Target, *values: object) -> None:
    files = staged(target, values)
    target.publish(files, manifest_of(files))


def started(path: Path, mode: str, *values: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, SCRIPT, str(path), mode, *values])


@pytest.mark.parametrize("mode", MODES)
def test_where_nothing_is_every_mode_makes_the_output_and_nothing_else(tmp_path: Path, mode: str) -> None:
    published = publish(tmp_path / "out", mode, [1, 2], [3])
    assert read(tmp_path / "out") == [1, 2, 3]
    assert read_output_manifest(tmp_path / "out").files == published.files
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_folder_counts_as_nothing(tmp_path: Path, mode: str) -> None:
    (tmp_path / "out").mkdir()
    publish(tmp_path / "out", mode, [1])
    assert read(tmp_path / "out") == [1]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_output_of_treadle_is_left_alone(tmp_path: Path, tree: Tree, mode: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("dear")
    before = tree(tmp_path)
    for name in ("out", "file"):
        with pytest.raises(ArtifactError, match=f"output 'out': {tmp_path / name} is"):
            publish(tmp_path / name, mode, [1])
    assert tree(tmp_path) == before


def test_an_output_is_not_replaced_unless_the_mode_says_so(tmp_path: Path, tree: Tree) -> None:
    publish(tmp_path / "out", "error", [1])
    before = tree(tmp_path)
    with pytest.raises(
        ArtifactError, match=r"already there and is never overwritten; .* overwrite or append"
    ):
        publish(tmp_path / "out", "error", [2])
    assert tree(tmp_path) == before


@pytest.mark.parametrize("first", MODES)
def test_overwrite_leaves_only_the_new_files(tmp_path: Path, first: str) -> None:
    publish(tmp_path / "out", first, [1], [2])
    published = publish(tmp_path / "out", "overwrite", [3])
    assert read(tmp_path / "out") == [3]
    [folder] = {each.name.partition("/")[0] for each in published.files}
    assert {each.name for each in (tmp_path / "out").iterdir()} == {folder, "_manifest.json"}


@pytest.mark.parametrize("first", MODES)
def test_append_puts_the_new_rows_after_the_old_ones(tmp_path: Path, first: str) -> None:
    publish(tmp_path / "out", first, [1], [2])
    published = publish(tmp_path / "out", "append", [3], [4])
    assert read(tmp_path / "out") == [1, 2, 3, 4]
    assert published.rows == 4
    assert published == read_output_manifest(tmp_path / "out")


def test_files_that_somebody_put_beside_the_parts_stay(tmp_path: Path) -> None:
    publish(tmp_path / "out", "error", [1])
    (tmp_path / "out" / "README").write_text("mine")
    publish(tmp_path / "out", "overwrite", [2])
    assert (tmp_path / "out" / "README").read_text() == "mine"


@pytest.mark.parametrize(
    ("known", "found", "together"),
    [
        ("int64", "double", "double"),
        ("double", "int64", "double"),
        ("null", "string", "string"),
        ("list<item: null>", "list<item: struct<a: int64>>", "list<item: struct<a: int64>>"),
        ("struct<a: int64>", "struct<a: null, b: bool>", "struct<a: int64, b: bool>"),
    ],
)
def test_append_widens_a_column(tmp_path: Path, known: str, found: str, together: str) -> None:
    publish(tmp_path / "out", "append", [1], columns={"id": "int64", "a": known})
    published = publish(tmp_path / "out", "append", [2], columns={"new": "bool", "a": found})
    assert published.columns == {"id": "int64", "a": together, "new": "bool"}


@pytest.mark.parametrize(
    ("known", "found"),
    [("int64", "string"), ("list<item: int64>", "int64"), ("map<string, int64>", "int64"), ("?", "int64")],
)
def test_append_refuses_a_column_of_another_type(tmp_path: Path, tree: Tree, known: str, found: str) -> None:
    publish(tmp_path / "out", "append", [1], columns={"a": known})
    before = tree(tmp_path)
    with pytest.raises(ArtifactError) as caught:
        publish(tmp_path / "out", "append", [2], columns={"a": found})
    assert f"column 'a': expected {known}, as in the rows that are there, got {found}" in str(caught.value)
    assert tree(tmp_path) == before


def test_append_refuses_another_format_before_anything_is_written(tmp_path: Path) -> None:
    publish(tmp_path / "out", "append", [1])
    with pytest.raises(ArtifactError, match="expected jsonl files to append, as it holds, got parquet"):
        target_for("out", spec_of(tmp_path / "out", "append", "parquet")).prepare()


def test_overwrite_may_change_the_format(tmp_path: Path) -> None:
    publish(tmp_path / "out", "overwrite", [1])
    target_for("out", spec_of(tmp_path / "out", "overwrite", "parquet")).prepare()


def test_whoever_would_overwrite_an_output_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    publish(tmp_path / "out", "overwrite", [1])
    slow = prepared(tmp_path / "out", "overwrite")
    publish(tmp_path / "out", "append", [2])
    with pytest.raises(ArtifactError, match="another run has published there since this one began"):
        put(slow, 3)
    slow.discard()
    assert read(tmp_path / "out") == [1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("there", [True, False])
def test_what_is_withdrawn_leaves_what_was_there(tmp_path: Path, tree: Tree, mode: str, there: bool) -> None:
    if there and mode != "error":
        publish(tmp_path / "out", "error", [1])
    before = tree(tmp_path)
    target = prepared(tmp_path / "out", mode)
    put(target, 2)
    target.withdraw()
    target.discard()
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("mode", "left"), [("append", [1, 3]), ("overwrite", [1, 3])])
def test_what_others_appended_meanwhile_survives_a_withdrawal(
    tmp_path: Path, mode: str, left: list[int]
) -> None:
    publish(tmp_path / "out", "error", [1])
    target = prepared(tmp_path / "out", mode)
    put(target, 2)
    publish(tmp_path / "out", "append", [3])
    target.withdraw()
    target.discard()
    assert read(tmp_path / "out") == left


def test_a_writer_that_lives_can_withdraw_although_others_cleared_up(tmp_path: Path) -> None:
    """The files that it replaced are named by no manifest until then, and look like leftovers."""
    publish(tmp_path / "out", "overwrite", [1])
    target = prepared(tmp_path / "out", "overwrite")
    put(target, 2)
    target_for("other", spec_of(tmp_path / "out", "append")).prepare()
    target.withdraw()
    assert read(tmp_path / "out") == [1]


def test_a_publication_that_fails_leaves_what_was_there(tmp_path: Path, tree: Tree) -> None:
    publish(tmp_path / "out", "overwrite", [1])
    before = tree(tmp_path)
    target = prepared(tmp_path / "out", "overwrite")
    first, second = staged(target, [2], [3])
    Path(second.path).unlink()
    with pytest.raises(RunError, match=f"cannot write {tmp_path / 'out'}: .*No such file"):
        target.publish([first, second], manifest_of([first, second]))
    target.discard()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("mode", MODES)
def test_what_a_checkpoint_keeps_is_still_there_after_a_publication(
    tmp_path: Path, tree: Tree, mode: str
) -> None:
    keep = tmp_path / "kept"
    publish(tmp_path / "out", mode, [1], [2], keep=keep)
    assert (keep / "staged-0").read_bytes() == b"1\n"
    assert (keep / "staged-1").read_bytes() == b"2\n"
    assert read(tmp_path / "out") == [1, 2]


def test_files_are_copied_where_links_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    publish(tmp_path / "out", "error", [1], keep=tmp_path / "kept")
    assert read(tmp_path / "out") == [1]
    assert (tmp_path / "kept" / "staged-0").read_bytes() == b"1\n"


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a_run_that_goes_on_after_its_publication_does_not_publish_twice(tmp_path: Path, mode: str) -> None:
    publish(tmp_path / "out", "append", [1])
    for _ in range(2):  # the second is killed before the checkpoint is removed, as far as the first can tell
        publish(tmp_path / "out", mode, [2], keep=tmp_path / "kept")
    assert read(tmp_path / "out") == ([2] if mode == "overwrite" else [1, 2])


def test_two_who_append_at_once_lose_nothing(tmp_path: Path) -> None:
    values = [[f"[{writer * 100 + each}]" for each in range(10)] for writer in range(3)]
    writers = [started(tmp_path / "out", "append", *each) for each in values]
    assert [each.wait() for each in writers] == [0, 0, 0]
    found = read(tmp_path / "out")
    assert sorted(found) == [writer * 100 + each for writer in range(3) for each in range(10)]
    for writer in range(3):
        own = [each for each in found if each // 100 == writer]
        assert own == sorted(own)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_reader_sees_whole_versions_while_the_output_is_overwritten(tmp_path: Path) -> None:
    versions = [[version] * 50 for version in range(21)]
    publish(tmp_path / "out", "overwrite", versions[0][:25], versions[0][25:])
    over = threading.Event()
    seen: list[list[int]] = []

    def look() -> None:
        while not over.is_set():
            try:
                seen.append(read(tmp_path / "out"))
            except FileNotFoundError:
                continue  # the version that it was reading is gone; the next one is whole

    reader = threading.Thread(target=look)
    reader.start()
    for each in versions[1:]:
        publish(tmp_path / "out", "overwrite", each[:25], each[25:])
    over.set()
    reader.join()
    seen.append(read(tmp_path / "out"))
    assert all(each in versions for each in seen)
    assert seen[-1] == versions[-1]


@pytest.mark.parametrize("kept", ["kept", "not-kept"])
@pytest.mark.parametrize("mode", MODES)
def test_a_writer_killed_at_any_operation_leaves_the_old_or_the_new(
    tmp_path: Path, mode: str, kept: str
) -> None:
    """And the next run works, and leaves nothing of it behind."""
    subprocess.run([sys.executable, KILLER, str(tmp_path), mode, kept], check=True)
