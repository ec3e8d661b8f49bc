"""What a committed output consists of: its files with their sums, kept as `_manifest.json` inside it.

A folder with this file is whole; the file is deterministic, so equal outputs have equal manifests.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import fsspec

from treadle.errors import ArtifactError

# Readers of whole folders (pyarrow, Spark) pass over names that begin with an underscore.
MANIFEST_NAME = "_manifest.json"
_VERSION = 1


@dataclass(frozen=True)
class OutputFile:
    """One part file: its name inside the output, rows, bytes and SHA-256 in hex."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class OutputManifest:
    """One output: files sorted by name, and the Arrow type of each column as text."""

    output: str
    path: str
    backend: str
    rows: int
    files: tuple[OutputFile, ...]
    columns: Mapping[str, str]

    def to_json(self) -> bytes:
        """The content of `_manifest.json`. The path is left out: a moved output is the same output."""
        document = {"version": _VERSION, **asdict(self)}
        del document["path"]
        return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def read_output_manifest(path: str | PathLike[str]) -> OutputManifest:
    """The manifest of the output folder at `path` (any fsspec path).

    Raises ArtifactError when there is none, or it is not readable, or was written by a newer treadle.
    """
    file = f"{os.fspath(path)}/{MANIFEST_NAME}"
    try:
        with fsspec.open(file, "rb") as stream:
            return _from_document(json.loads(stream.read()), str(path))
    except FileNotFoundError as error:
        raise ArtifactError(f"{path}: no {MANIFEST_NAME}, so this is not a committed output") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"{file}: not an output manifest: {error!r}; remove the output and run again"
        ) from error


def _from_document(document: dict[str, Any], path: str) -> OutputManifest:
    version = document.pop("version")
    if version != _VERSION:
        raise ValueError(f"expected version {_VERSION}, found {version!r}")
    files = tuple(OutputFile(**each) for each in document.pop("files"))
    return OutputManifest(**document, path=path, files=files)
