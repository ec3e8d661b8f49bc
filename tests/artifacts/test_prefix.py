"""The store: argument, environment, settings, and else a folder of the project."""

from pathlib import Path

import pytest

from treadle.artifacts import Artifact, find_prefix
from treadle.errors import ArgumentError


@pytest.fixture(autouse=True)
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "inner"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TREADLE_PREFIX", raising=False)
    return folder


def test_each_source_gives_way_to_the_one_before(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_prefix() == str(inner / ".treadle" / "store")
    (tmp_path / "pyproject.toml").touch()
    assert find_prefix() == str(tmp_path / ".treadle" / "store")
    (tmp_path / "pyproject.toml").write_text('[tool.treadle]\nprefix = "kept"\n')
    assert find_prefix() == str(tmp_path / "kept")
    (tmp_path / "treadle.toml").write_text('prefix = "/kept/elsewhere"\n')
    assert find_prefix() == "/kept/elsewhere"
    monkeypatch.setenv("TREADLE_PREFIX", "from/env")
    assert find_prefix() == str(inner / "from" / "env")
    assert find_prefix("given") == str(inner / "given")
    assert find_prefix(Path("/given")) == "/given"


def test_local_urls_are_paths() -> None:
    assert find_prefix("file:///a/b") == "/a/b"
    assert find_prefix("local:///a/b") == "/a/b"


@pytest.mark.parametrize("prefix", ["s3://bucket/x", "memory://x", ""])
def test_other_stores_are_refused_for_now(prefix: str) -> None:
    with pytest.raises(ArgumentError, match="prefix: expected"):
        find_prefix(prefix)


def test_an_artifact_is_a_folder_with_files() -> None:
    artifact = Artifact("/a/b")
    assert artifact / "c.txt" == "/a/b/c.txt"
    assert Path(artifact) == Path("/a/b")
    assert str(artifact) == "/a/b"
