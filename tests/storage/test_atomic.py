from __future__ import annotations

import threading
from pathlib import Path

import pytest

from treadle.errors import ArgumentError
from treadle.storage import write_atomically
from treadle.storage.atomic import local_path


def test_a_file_is_made_with_its_folders_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([65 + n]) * 50_000 for n in range(8)]
    write_atomically(path, contents[0])
    seen: set[bytes] = set()
    writing = threading.Event()

    def read() -> None:
        while not writing.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for content in contents:
        write_atomically(path, content)
    writing.set()
    reader.join()
    assert seen <= set(contents)


def test_a_failing_write_changes_nothing_and_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "inside").write_bytes(b"kept")
    with pytest.raises(OSError, match="file"):
        write_atomically(tmp_path / "file", b"new")
    assert [each.name for each in tmp_path.rglob("*")] == ["file", "inside"]


def test_only_local_paths_can_be_written() -> None:
    assert local_path("file:///a/b") == Path("/a/b")
    assert local_path("a/b") == Path.cwd() / "a/b"
    with pytest.raises(
        ArgumentError, match=r"cannot write to s3://bucket/x: expected a local path, got the scheme 's3'"
    ):
        local_path("s3://bucket/x")
