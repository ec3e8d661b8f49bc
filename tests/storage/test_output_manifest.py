from __future__ import annotations

import json
from pathlib import Path

import pytest

from treadle.errors import ArtifactError
from treadle.storage import OutputFile, OutputManifest, read_output_manifest
from treadle.storage.output_manifest import parse_output_manifest


def manifest_at(path: Path) -> OutputManifest:
    files = (
        OutputFile("part-00000.jsonl", 2, 10, "ab"),
        OutputFile("data-0a1b2c3d/part-00000.jsonl", 3, 20, "cd"),
    )
    return OutputManifest("rows", str(path), "jsonl", 5, files, {"id": "int64", "né": "string"})


def test_what_is_written_is_read_back_wherever_the_output_lies(tmp_path: Path) -> None:
    """An output may be moved or copied whole, so the path is not in the file."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_manifest.json").write_bytes(manifest_at(tmp_path / "here").to_json())
        assert read_output_manifest(tmp_path / name) == manifest_at(tmp_path / name)


def test_the_files_keep_their_order(tmp_path: Path) -> None:
    """It is that of the rows: what was appended comes last, whatever its name."""
    content = manifest_at(tmp_path).to_json()
    names = [each.name for each in parse_output_manifest(content, str(tmp_path)).files]
    assert names == ["part-00000.jsonl", "data-0a1b2c3d/part-00000.jsonl"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b"{}", b'{"version": 2}', b'{"version": 1, "files": [{"name": 1}]}'],
)
def test_a_manifest_that_cannot_be_understood_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "_manifest.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=f"{tmp_path}/_manifest.json: not an output manifest"):
        read_output_manifest(tmp_path)


@pytest.mark.parametrize("name", ["", "/", "/etc/passwd", "../x", "a/..", "a/b/c", "a/", "..", "/x", 7])
def test_a_name_that_leads_out_of_the_output_is_an_error(tmp_path: Path, name: object) -> None:
    document = json.loads(manifest_at(tmp_path).to_json())
    document["files"][1]["name"] = name
    with pytest.raises(ArtifactError, match="not an output manifest"):
        parse_output_manifest(json.dumps(document).encode(), str(tmp_path))


def test_no_manifest_means_no_output(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="so this is not a committed output"):
        read_output_manifest(tmp_path)
