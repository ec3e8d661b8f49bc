"""JSON files that come with weights, whose numbers are numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import orjson

from treadle.engine.weights.regular_file import check_regular
from treadle.errors import ArtifactError

T = TypeVar("T")

_LARGEST = 2**24


def read_json(path: Path, kind: type[T]) -> T:
    """The dict, or the list, in a file.

    Raises:
        ArtifactError: the file is missing, is no JSON (NaN is none), larger than any that comes with
            weights, or holds something else.
    """
    try:
        found = orjson.loads(read_bytes(path))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(found, kind):
        raise ArtifactError(f"{path}: expected a JSON {kind.__name__}, got {type(found).__name__}")
    return found


def read_object_if_there(path: Path) -> dict[str, Any]:
    """The object in a file, as by `read_json`; empty when the file is missing."""
    return read_json(path, dict) if path.exists() else {}


def read_bytes(path: Path, largest: int = _LARGEST) -> bytes:
    """All of a file that is parsed, which takes up to thirty times its room.

    Raises:
        OSError: it cannot be read, or is no file.
        ValueError: it is larger.
    """
    check_regular(path)
    if (size := path.stat().st_size) > largest:
        raise ValueError(f"it has {size:,} bytes, at most {largest:,} are read")
    return path.read_bytes()
