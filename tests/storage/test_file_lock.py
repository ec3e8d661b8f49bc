from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from treadle.storage.file_lock import FileLock, LiveFolder, clear_dead, locked

HOLDER = """
import sys, time
from pathlib import Path
from treadle.storage.file_lock import LiveFolder

folder = LiveFolder(Path(sys.argv[1]))
folder.claim()
folder.path.mkdir()
print("ready", flush=True)
time.sleep(600)
"""


def test_one_at_a_time_has_a_lock_and_nothing_stays_behind(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with locked(tmp_path / "lock"):
        assert not lock.acquire(wait=False)
    assert lock.acquire(wait=False)
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_who_waits_for_a_lock_whose_file_was_removed_takes_the_next_one(tmp_path: Path) -> None:
    """Else it would hold a file that is no longer there, and the next one another."""
    inside: list[int] = []
    together: list[int] = []

    def enter() -> None:
        for _ in range(50):
            with locked(tmp_path / "lock"):
                inside.append(1)
                together.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert together == [1] * 200


def test_what_a_living_process_has_claimed_stays_until_it_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        assert not clear_dead(tmp_path / "out")
        assert len(list(tmp_path.iterdir())) == 2
        os.kill(holder.pid, signal.SIGKILL)
    assert clear_dead(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_hidden_folders_of_other_outputs_and_of_nobody_are_told_apart(tmp_path: Path) -> None:
    other = LiveFolder(tmp_path / "out2")
    other.path.mkdir()
    (tmp_path / ".out.staging-0123abcd").mkdir()
    assert clear_dead(tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == [other.path.name]


def test_where_no_folder_is_nothing_is_left_behind(tmp_path: Path) -> None:
    assert clear_dead(tmp_path / "none" / "out")


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        FileLock(tmp_path / "file" / "lock").acquire()


def test_leftovers_are_those_of_the_target_only(tmp_path: Path) -> None:
    """Two outputs side by side, one name the start of the other: neither may lose its staging to the
    other.
    """
    for name in (".out.staging-1", ".out.staging-2", ".out2.staging-1", "out", "staging"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").write_bytes(b"x")
    assert clear_dead(tmp_path / "out")
    assert clear_dead(tmp_path / "nowhere" / "out")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".out2.staging-1", "out", "staging"]


def test_a_claim_that_was_torn_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may strike just after the file of the lock was made."""
    folder = LiveFolder(tmp_path / "out")
    made = os.open

    def torn(*given: Any) -> int:
        os.close(made(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", torn)
    with pytest.raises(KeyboardInterrupt):
        folder.claim()
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 1
    folder.release()
    assert list(tmp_path.iterdir()) == []
