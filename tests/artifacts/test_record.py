"""The record is the only mark of done: it can be read whole, or it is an error that says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from treadle.artifacts import FileEntry, RecordBody, RecordHead
from treadle.artifacts.record import FORMAT, read_head, read_record, write_body, write_head
from treadle.errors import ArtifactError
from treadle.storage.ledger import Entry

LEDGER = "/store/.treadle/ledger.db"
NewHead = Callable[..., RecordHead]


def entry(head: str, body: str = "") -> Entry:
    return Entry("a/f", 3, head, body)


def changed(text: str, **changes: Any) -> str:
    return json.dumps({**json.loads(text), **changes})


def test_a_record_comes_back_as_it_was_written(new_head: NewHead, body: RecordBody) -> None:
    head = new_head(
        files=(FileEntry("a b.txt", 3, "sha256:00"), FileEntry("ü/x", 0, "etag:1")), location="s3://b/x"
    )
    record = read_record(LEDGER, entry(write_head(head), write_body(body)))
    assert (record.number, record.head, record.body) == (3, head, body)


def test_each_part_says_its_format(new_head: NewHead, body: RecordBody) -> None:
    assert json.loads(write_head(new_head()))["format"] == FORMAT
    assert json.loads(write_body(body))["format"] == FORMAT


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"format": "2"}', '{"format": 2}', "\x00", "[" * 100_000]
)
def test_a_part_that_cannot_be_read_is_told_with_ledger_place_and_remedy(
    new_head: NewHead, body: RecordBody, text: str
) -> None:
    """Taken for absent, it would be overwritten in silence; taken for done, it would serve nothing."""
    words = rf"{LEDGER}: a/f: the record of build 3 cannot be read: .*treadle \w+ a/f"
    with pytest.raises(ArtifactError, match=words):
        read_head(LEDGER, entry(text))
    with pytest.raises(ArtifactError, match=words):
        read_record(LEDGER, entry(text, write_body(body)))
    with pytest.raises(ArtifactError, match=words):
        read_record(LEDGER, entry(write_head(new_head()), text))


def test_a_truncated_part_is_an_error_at_every_length(new_head: NewHead, body: RecordBody) -> None:
    head, rest = write_head(new_head()), write_body(body)
    for length in range(len(head)):
        with pytest.raises(ArtifactError):
            read_head(LEDGER, entry(head[:length]))
    for length in range(len(rest)):
        with pytest.raises(ArtifactError):
            read_record(LEDGER, entry(head, rest[:length]))


def test_a_part_of_a_newer_treadle_is_not_guessed_at(new_head: NewHead, body: RecordBody) -> None:
    head, rest = write_head(new_head()), write_body(body)
    words = rf"{LEDGER}: a/f: the record has format {FORMAT + 1}, written by a newer treadle"
    with pytest.raises(ArtifactError, match=words):
        read_head(LEDGER, entry(changed(head, format=FORMAT + 1, new=True)))
    with pytest.raises(ArtifactError, match=words):
        read_record(LEDGER, entry(head, changed(rest, format=FORMAT + 1)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"started": 5},
        {"started": "yesterday"},
        {"deps": None},
        {"build": None},
        {"location": None},
        {"files": 3},
        {"files": [["a", 3]]},
        {"files": [[1, 3, "sha256:00"]]},
        {"files": [["a", "3", "sha256:00"]]},
        {"surprise": 1},
    ],
)
def test_a_head_with_wrong_kinds_is_an_error(new_head: NewHead, wrong: Any) -> None:
    """Found where they are used, they would end a run in the middle with an error that names no record."""
    with pytest.raises(ArtifactError, match=f"{LEDGER}: a/f: .* cannot be read"):
        read_head(LEDGER, entry(changed(write_head(new_head()), **wrong)))


def test_a_head_without_one_of_its_fields_is_an_error(new_head: NewHead) -> None:
    content = json.loads(write_head(new_head()))
    for name in content:
        less = {key: each for key, each in content.items() if key != name}
        with pytest.raises(ArtifactError, match="cannot be read"):
            read_head(LEDGER, entry(json.dumps(less)))


def test_heads_differ_by_their_build_alone(new_head: NewHead) -> None:
    assert new_head() != replace(new_head(), build="b2")
