"""The record is the only mark of done, so it is there whole or not at all."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import RECORD_NAME, FileEntry, Record, read_record, write_record
from treadle.artifacts.record import FORMAT
from treadle.errors import ArtifactError

RECORD = Record(
    build="b1",
    step_id="a-1",
    name="a",
    fingerprint="f",
    code_hash="c",
    deps={"x-1": "b0"},
    config={"dict": []},
    files=(FileEntry("a/b.txt", 3, "00"),),
    value={"tuple": [1]},
    started="2020-01-01T00:00:00+00:00",
    seconds=0.5,
    attempts=1,
    host="h",
    treadle="0",
)


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_record(str(tmp_path), RECORD)
    assert read_record(str(tmp_path)) == RECORD
    assert [each.name for each in tmp_path.iterdir()] == [RECORD_NAME]


def test_a_later_record_takes_the_place_of_the_former(tmp_path: Path) -> None:
    write_record(str(tmp_path), RECORD)
    write_record(str(tmp_path), replace(RECORD, build="b2"))
    assert read_record(str(tmp_path)) == replace(RECORD, build="b2")


def test_no_folder_and_no_record_are_no_record(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_record(str(tmp_path)) is None
    assert read_record(str(tmp_path / "nowhere")) is None
    assert read_record(str(tmp_path / "file" / "below")) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}', '{"format": 1, "files": 3}', "\x00"])
def test_a_corrupt_record_is_an_error_with_its_path(tmp_path: Path, text: str) -> None:
    """Taken for absent, it would be overwritten in silence; taken for done, it would serve nothing."""
    (tmp_path / RECORD_NAME).write_text(text)
    with pytest.raises(ArtifactError, match=f"{tmp_path}/{RECORD_NAME}.*rm -r {tmp_path}"):
        read_record(str(tmp_path))


def test_a_truncated_record_is_an_error_at_every_length(tmp_path: Path) -> None:
    write_record(str(tmp_path), RECORD)
    text = (tmp_path / RECORD_NAME).read_text()
    for length in range(0, len(text) - 1, 7):
        (tmp_path / RECORD_NAME).write_text(text[:length])
        with pytest.raises(ArtifactError):
            read_record(str(tmp_path))


def test_a_record_of_a_newer_treadle_is_not_guessed_at(tmp_path: Path) -> None:
    write_record(str(tmp_path), RECORD)
    content: dict[str, Any] = json.loads((tmp_path / RECORD_NAME).read_text())
    (tmp_path / RECORD_NAME).write_text(json.dumps({**content, "format": FORMAT + 1, "new": True}))
    with pytest.raises(ArtifactError, match=f"format {FORMAT + 1}, written by a newer treadle"):
        read_record(str(tmp_path))


@pytest.mark.parametrize(
    "wrong",
    [
        {"started": 5},
        {"started": "yesterday"},
        {"deps": None},
        {"build": None},
        {"seconds": "long"},
        {"files": [{"path": 1, "bytes": 3, "sha256": "00"}]},
        {"files": [{"path": "a", "bytes": "3", "sha256": "00"}]},
    ],
)
def test_a_record_with_wrong_kinds_is_an_error_with_its_path(tmp_path: Path, wrong: Any) -> None:
    """Found where they are used, they would end a run in the middle with an error that names no file."""
    write_record(str(tmp_path), RECORD)
    content = json.loads((tmp_path / RECORD_NAME).read_text())
    (tmp_path / RECORD_NAME).write_text(json.dumps({**content, **wrong}))
    with pytest.raises(ArtifactError, match=f"{tmp_path}/{RECORD_NAME}.*rm -r {tmp_path}"):
        read_record(str(tmp_path))


def test_a_record_that_is_no_file_or_endless_brackets_is_an_error_with_its_path(tmp_path: Path) -> None:
    record = tmp_path / RECORD_NAME
    record.write_text("[" * 100_000)
    with pytest.raises(ArtifactError, match=str(record)):
        read_record(str(tmp_path))
    record.unlink()
    record.mkdir()
    with pytest.raises(ArtifactError, match=str(record)):
        read_record(str(tmp_path))
