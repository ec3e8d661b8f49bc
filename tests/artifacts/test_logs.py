"""Where the lines of an attempt are gathered that go into an object store."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.artifacts import logs
from treadle.artifacts.logs import log_file


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    logs._local_folder.cache_clear()
    yield tmp_path
    logs._local_folder.cache_clear()


def test_all_processes_of_a_user_gather_in_one_folder_that_is_theirs(temporary: Path) -> None:
    first = Path(log_file("s3://bucket", "a/1", "run", 1))
    logs._local_folder.cache_clear()  # as in another process
    assert Path(log_file("s3://bucket", "a/1", "run", 1)) == first
    assert first.parent.parent == temporary
    assert first.parent.stat().st_mode & 0o777 == 0o700


def test_each_attempt_has_a_file_of_its_own(temporary: Path) -> None:
    files = {
        log_file(f"s3://{bucket}", place, run, attempt)
        for bucket in "ab"
        for place in ("a/1", "a/2")
        for run in ("r", "s")
        for attempt in (1, 2)
    }
    assert len(files) == 16


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_name_that_somebody_else_has_taken_is_not_used(temporary: Path, kind: str) -> None:
    taken = temporary / f"treadle-logs-{os.getuid()}"
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    taken.touch() if kind == "file" else taken.symlink_to(elsewhere)
    assert Path(log_file("s3://bucket", "a/1", "run", 1)).parent not in (taken, elsewhere)
