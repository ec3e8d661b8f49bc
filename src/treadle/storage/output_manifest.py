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
    """One part file: its name inside the output, rows, bytes and SHA-256 in hex.

    Files of an output that was overwritten or appended to are in folders, `data-<token>/part-00000.parquet`.
    """

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class OutputManifest:
    """One output: files in the order of their rows, and the Arrow type of each column as text."""

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
    try:
        with fsspec.open(f"{os.fspath(path)}/{MANIFEST_NAME}", "rb") as stream:
            content = stream.read()
    except FileNotFoundError as error:
        raise ArtifactError(f"{path}: no {MANIFEST_NAME}, so this is not a committed output") from error
    return parse_output_manifest(content, str(path))


def parse_output_manifest(content: bytes, path: str) -> OutputManifest:
    """The manifest whose file holds `content`, of the output at `path`. Raises ArtifactError; see above."""
    try:
        return _from_document(json.loads(content), path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"{path}/{MANIFEST_NAME}: not an output manifest: {error!r}; remove the output and run again"
        ) from error


def _from_document(document: dict[str, Any], path: str) -> OutputManifest:
    version = document.pop("version")
    if version != _VERSION:
        raise ValueError(f"expected version {_VERSION}, found {version!r}")
    files = tuple(OutputFile(**each) for each in document.pop("files"))
    for each in files:
        _check_name(each.name)
    return OutputManifest(**document, path=path, files=files)


def _check_name(name: str) -> None:
    folder, mark, file = name.rpartition("/")
    if "/" in folder or (mark and not folder) or {folder, file} & {".", ".."} or not file:
        raise ValueError(f"expected the name of a file, or of one in a folder of the output, found {name!r}")
