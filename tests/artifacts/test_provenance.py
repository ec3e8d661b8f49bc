"""Records say from which state of the code a build is."""

from __future__ import annotations

import hashlib
import socket
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from treadle.artifacts.provenance import Provenance, capture
from treadle.execution import StepRunner, StepSpec
from treadle.testing import temporary_store


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git("init", "-q")
    (tmp_path / "code.py").write_text("a = 1\n")
    (tmp_path / "uv.lock").write_text("lock\n")
    git("add", ".")
    git("commit", "-qm", "first")
    return tmp_path


def captured() -> Provenance:
    return capture(uuid4().hex)


@pytest.mark.usefixtures("repository")
def test_a_clean_repository_gives_its_commit() -> None:
    found = captured()
    assert found.commit == git("rev-parse", "HEAD")
    assert found.dirty == ""
    assert found.lock == hashlib.sha256(b"lock\n").hexdigest()
    assert found.host == socket.gethostname()


def test_changes_have_a_hash_of_their_own(repository: Path) -> None:
    hashes = set()
    for text in ("a = 2\n", "a = 3\n", "a = 2\n"):
        (repository / "code.py").write_text(text)
        hashes.add(captured().dirty)
    assert len(hashes) == 2
    assert "" not in hashes
    git("add", ".")
    assert captured().dirty in hashes, "staged or not, it is the same change"


def test_a_folder_inside_of_the_repository_is_in_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "deep").mkdir()
    monkeypatch.chdir(repository / "deep")
    (repository / "code.py").write_text("a = 2\n")
    found = captured()
    assert (found.commit, found.lock) == (git("rev-parse", "HEAD"), hashlib.sha256(b"lock\n").hexdigest())
    assert found.dirty


def test_outside_of_a_repository_and_without_git_there_is_no_commit(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = captured()
    assert (found.commit, found.dirty) == ("", "")
    assert found.lock == hashlib.sha256(b"lock\n").hexdigest()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path_factory.mktemp("outside"))
    assert (captured().commit, captured().dirty, captured().lock) == ("", "", "")


def test_a_repository_without_a_commit_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    assert captured().commit == ""


def test_a_record_has_it(repository: Path) -> None:
    (repository / "code.py").write_text("a = 2\n")
    with temporary_store() as store:
        step = StepSpec("a", lambda path: 1, output_path_prefix=store.prefix)
        StepRunner().run([step])
        record = store.record(step.output_path)
    assert record is not None
    assert record.body.commit == git("rev-parse", "HEAD")
    assert len(record.body.dirty) == 64
    assert record.body.lock == hashlib.sha256(b"lock\n").hexdigest()
