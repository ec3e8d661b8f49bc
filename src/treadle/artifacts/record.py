"""The record of a build: the only mark that a step is done.

The ledger keeps it in two texts. The head is what planning reads of every step: which build this is,
from what it was made, and which files it left. The body is the rest: the value, the config, and where
and when it was built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from treadle.artifacts.json_form import Json
from treadle.errors import ArtifactError
from treadle.storage.ledger import Entry

FORMAT = 2  # 1 was a file beside each output, before there were ledgers; nothing reads it any more
_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

P = TypeVar("P")


class FileEntry(NamedTuple):
    """One file of an output folder; `path` is relative to it, with forward slashes.

    `checksum` is `sha256:` and hex, or what the object store says of the object, as in `etag:...`.
    """

    path: str
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class RecordHead:
    """Which build this is, of what, and what it left.

    `build` is unique to it; `deps` says from which build of each dependency (step id -> build) it was
    made. `location` is the folder of the files, as seen from the output path, when it is another.
    `started` is an ISO 8601 time in UTC, `seconds` how long the function took.
    """

    build: str
    step_id: str
    name: str
    fingerprint: str
    code_hash: str
    deps: Mapping[str, str]
    files: tuple[FileEntry, ...]
    location: str
    started: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RecordBody:
    """What the function returned (`encode_value`), what it was called with, and provenance.

    `config_text` is the canonical form of the recipe, as JSON.
    `commit` and `dirty` are of the git repository around the caller (`dirty` is the SHA-256 of its
    uncommitted changes, empty without any); `lock` is the SHA-256 of its lock file.
    """

    value: Json
    config_text: str
    artifact_type: str
    attempts: int
    run: str
    host: str
    treadle: str
    commit: str
    dirty: str
    lock: str

    @property
    def config(self) -> Json:
        """The identity, as a canonical tree."""
        return json.loads(self.config_text)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Record:
    """All that is known of build `number` of one step."""

    number: int
    head: RecordHead
    body: RecordBody


def write_head(head: RecordHead) -> str:
    """The text of a head."""
    return _write(head)


def write_body(body: RecordBody) -> str:
    """The text of a body."""
    return _write(body)


def read_head(ledger: str, entry: Entry) -> RecordHead:
    """The head of an entry of `ledger` (which messages name).

    Raises:
        ArtifactError: it cannot be read, or a newer treadle wrote it.
    """
    return _read(ledger, entry, entry.head, _head)


def read_record(ledger: str, entry: Entry) -> Record:
    """The whole record of an entry with its body; raises as `read_head`."""
    body = _read(ledger, entry, entry.body, lambda content: RecordBody(**content))
    return Record(entry.number, read_head(ledger, entry), body)


def _write(part: RecordHead | RecordBody) -> str:
    return _ENCODE({"format": FORMAT, **{each: getattr(part, each) for each in part.__slots__}})


def _read(ledger: str, entry: Entry, text: str, make: Callable[[dict[str, Any]], P]) -> P:
    try:
        content = json.loads(text)
        form = content.pop("format", None) if isinstance(content, dict) else None
        if not isinstance(form, int):
            raise ValueError("it has no format number")  # noqa: TRY004, TRY301 - told as the other faults are
        if form > FORMAT:
            raise _newer(ledger, entry, form)
        return make(content)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _corrupt(ledger, entry, f"{type(error).__name__}: {error}") from error


def _head(content: dict[str, Any]) -> RecordHead:
    files = tuple(FileEntry(*each) for each in content.pop("files"))
    head = RecordHead(**content, files=files)
    _check_head(head)
    return head


def _check_head(head: RecordHead) -> None:
    texts = (head.build, head.step_id, head.name, head.fingerprint, head.code_hash, head.location)
    kinds = {type(each) for each in texts} | {type(head.deps)}
    if kinds != {str, dict}:
        raise ValueError("a field is of another type than it is written with")
    if {(type(each.path), type(each.bytes)) for each in head.files} - {(str, int)}:
        raise ValueError("files: expected a path and a size for each")
    datetime.fromisoformat(head.started)


def _newer(ledger: str, entry: Entry, found: int) -> ArtifactError:
    return ArtifactError(
        f"{ledger}: {entry.place}: the record has format {found}, written by a newer treadle; "
        f"this one reads up to {FORMAT}: upgrade it"
    )


def _corrupt(ledger: str, entry: Entry, reason: str) -> ArtifactError:
    return ArtifactError(
        f"{ledger}: {entry.place}: the record of build {entry.number} cannot be read: {reason}; "
        f"to build the step again: treadle forget {entry.place}"
    )
