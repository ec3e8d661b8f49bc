"""The store: argument, environment, settings, and else a folder of the project."""

from pathlib import Path

import pytest

from treadle.artifacts import Artifact, find_prefix, is_url, join
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


def test_a_path_is_made_absolute_and_plain(inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert find_prefix("a/../b//c/") == str(inner / "b" / "c")
    assert find_prefix("~/kept") == "/home/me/kept"
    assert find_prefix("with space/ü") == str(inner / "with space" / "ü")


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("s3://bucket/x", "s3://bucket/x"),
        ("s3://bucket/x/", "s3://bucket/x"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/with space/ü", "s3://bucket/with space/ü"),
        ("memory://x/y/", "memory://x/y"),
        ("memory:///x", "memory://x"),
    ],
)
def test_a_url_is_kept_without_a_slash_at_its_end(
    prefix: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_prefix(prefix) == found
    monkeypatch.setenv("TREADLE_PREFIX", prefix)
    assert find_prefix() == found


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("", "prefix: expected the path of a folder"),
        ("s4://bucket/x", "prefix: expected a path, or a URL that fsspec knows, got s4://bucket/x .*s3"),
        ("s3://bucket/../x", r"prefix: expected a URL without '\.\.'"),
    ],
)
def test_what_is_no_prefix_is_refused(prefix: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        find_prefix(prefix)


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (("/a", "b"), "/a/b"),
        (("/a/", "b", "c"), "/a/b/c"),
        (("/a", "/b"), "/b"),
        (("s3://b/x", "c/d"), "s3://b/x/c/d"),
        (("s3://b/x", "s3://c"), "s3://c"),
        (("s3://b/x", "/local"), "/local"),
        (("/a", ""), "/a"),
    ],
)
def test_join_works_on_paths_and_urls(parts: tuple[str, ...], joined: str) -> None:
    assert join(*parts) == joined
    assert is_url(joined) == ("://" in joined)


def test_an_artifact_is_a_folder_with_files() -> None:
    artifact = Artifact("/a/b")
    assert artifact / "c.txt" == "/a/b/c.txt"
    assert Path(artifact) == Path("/a/b")
    assert str(artifact) == "/a/b"
