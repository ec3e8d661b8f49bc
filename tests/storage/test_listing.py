"""The files of a committed output: those that its manifest names, in its order, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treadle.errors import ArgumentError, ArtifactError
from treadle.storage import Dataset, OutputFile, OutputManifest, list_units, read_table

NAMES = ("part-00000.jsonl", "data-0000000b/part-00000.jsonl", "data-0000000a/part-00000.jsonl")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """An output that was appended to twice; the folder of the first comes later in the alphabet."""
    folder = tmp_path / "out"
    for at, name in enumerate(NAMES):
        put(folder / name, at)
    commit(folder, NAMES)
    return folder


def put(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'{"a": %d}\n' % value)


def commit(folder: Path, names: tuple[str, ...]) -> None:
    files = tuple(OutputFile(name, 1, 9, "0" * 64) for name in names)
    manifest = OutputManifest("out", str(folder), "jsonl", len(files), files, {"a": "int64"})
    (folder / "_manifest.json").write_bytes(manifest.to_json())


def values(folder: Path) -> list[object]:
    return read_table(Dataset("jsonl", str(folder)))["a"].to_pylist()


def test_the_order_is_that_of_the_manifest(output: Path) -> None:
    assert values(output) == [0, 1, 2]
    units = list_units(Dataset("jsonl", str(output)))
    assert [each.source for each in units] == [str(output / name) for name in NAMES]
    assert len({each.identity for each in units}) == 3


def test_folders_that_the_manifest_does_not_name_do_not_count(output: Path) -> None:
    """They are of a writer that has not ended, or was killed."""
    put(output / "data-0000000c" / "part-00000.jsonl", 7)
    put(output / "data-0000000c" / "stray.jsonl", 7)
    assert values(output) == [0, 1, 2]


def test_parts_that_an_overwrite_has_just_replaced_do_not_count(output: Path) -> None:
    """They are removed after the manifest was replaced, so a reader meets them."""
    commit(output, ("data-0000000a/part-00000.jsonl",))
    assert values(output) == [2]


@pytest.mark.parametrize("place", ["stray.jsonl", "data-0000000a/stray.jsonl"])
def test_a_data_file_of_somebody_else_is_an_error(output: Path, place: str) -> None:
    put(output / place, 7)
    with pytest.raises(ArtifactError, match=f"{place}: expected no file by _manifest.json, found 9 bytes"):
        values(output)


def test_a_file_that_is_gone_or_cut_is_an_error(output: Path) -> None:
    os.truncate(output / NAMES[1], 3)
    with pytest.raises(ArtifactError, match=f"{NAMES[1]}: expected 9 bytes by _manifest.json, found 3 bytes"):
        values(output)
    (output / NAMES[1]).unlink()
    (output / NAMES[1]).parent.rmdir()
    with pytest.raises(ArtifactError, match=f"{NAMES[1]}: expected 9 bytes by _manifest.json, found no file"):
        values(output)


def test_an_output_that_nobody_committed_yet_is_told_from_an_empty_folder(output: Path) -> None:
    (output / "_manifest.json").unlink()
    (output / NAMES[0]).unlink()
    with pytest.raises(ArgumentError, match="no committed output yet"):
        values(output)
    (output / "empty").mkdir()
    with pytest.raises(ArgumentError, match="no jsonl file at"):
        values(output / "empty")
