"""The record: the only mark that a step is done.

It lies in the step's output folder, is written last, and appears whole or not at all. A folder
without one is what is left of a step that was stopped.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias

from treadle.artifacts.fingerprint import Json
from treadle.errors import ArtifactError

RECORD_NAME = ".record.json"
FORMAT = 1

_Kinds: TypeAlias = Mapping[str, type | UnionType]
_TEXTS = ("build", "step_id", "name", "fingerprint", "code_hash")
_RECORD_KINDS: _Kinds = {**dict.fromkeys(_TEXTS, str), "deps": dict, "seconds": int | float}
_FILE_KINDS: _Kinds = {"path": str, "bytes": int, "sha256": str}


@dataclass(frozen=True)
class FileEntry:
    """One file of an output folder; `path` is relative to it, with forward slashes."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Record:
    """What is known of one build of one step.

    `build` is unique to it; `deps` says from which build of each dependency (step id -> build) it
    was made. `value` and `config` are JSON trees (`encode_value`, `canonical`), `started` is an
    ISO 8601 time in UTC.
    """

    build: str
    step_id: str
    name: str
    fingerprint: str
    code_hash: str
    deps: Mapping[str, str]
    config: Json
    files: tuple[FileEntry, ...]
    value: Json
    started: str
    seconds: float
    attempts: int
    host: str
    treadle: str
    format: int = FORMAT


def write_record(output_path: str, record: Record) -> None:
    """Put the record into the folder: to a temporary file, to the disk, then renamed into place."""
    text = json.dumps(dataclasses.asdict(record), indent=1)
    with tempfile.NamedTemporaryFile("w", dir=output_path, prefix=RECORD_NAME, delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(Path(output_path, RECORD_NAME))


def read_record(output_path: str) -> Record | None:
    """The record in the folder, or None when there is none.

    Raises:
        ArtifactError: there is one that cannot be read, or that a newer treadle wrote.
    """
    path = Path(output_path, RECORD_NAME)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, OSError, RecursionError) as error:
        raise _corrupt(path, str(error)) from error
    return _parsed(path, content)


def _parsed(path: Path, content: Any) -> Record:
    form = content.get("format") if isinstance(content, dict) else None
    if not isinstance(form, int):
        raise _corrupt(path, "it has no format number")
    if form > FORMAT:
        raise ArtifactError(
            f"{path}: the record has format {form}, written by a newer treadle; "
            f"this one reads up to {FORMAT}: upgrade it"
        )
    try:
        content["files"] = tuple(FileEntry(**each) for each in content["files"])
        record = Record(**content)
        datetime.fromisoformat(record.started)
    except (KeyError, TypeError, ValueError) as error:
        raise _corrupt(path, str(error)) from error
    _check_kinds(path, record, _RECORD_KINDS)
    for file in record.files:
        _check_kinds(path, file, _FILE_KINDS)
    return record


def _check_kinds(path: Path, part: Record | FileEntry, kinds: _Kinds) -> None:
    for name, kind in kinds.items():
        if not isinstance(found := getattr(part, name), kind):
            raise _corrupt(path, f"{name}: expected {getattr(kind, '__name__', kind)}, got {found!r}")


def _corrupt(path: Path, reason: str) -> ArtifactError:
    return ArtifactError(
        f"{path}: the record cannot be read: {reason}; to build the step again: rm -r {path.parent}"
    )
