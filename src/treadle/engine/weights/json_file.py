"""JSON files that come with weights, whose numbers are numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import orjson

from treadle.errors import ArtifactError

T = TypeVar("T")


def read_json(path: Path, kind: type[T]) -> T:
    """The dict, or the list, in a file.

    Raises:
        ArtifactError: the file is missing, is no JSON (NaN is none), or holds something else.
    """
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ArtifactError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(found, kind):
        raise ArtifactError(f"{path}: expected a JSON {kind.__name__}, got {type(found).__name__}")
    return found


def read_object_if_there(path: Path) -> dict[str, Any]:
    """The object in a file, as by `read_json`; empty when the file is missing."""
    return read_json(path, dict) if path.exists() else {}
