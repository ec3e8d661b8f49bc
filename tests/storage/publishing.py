"""Outputs put in place and read as a run does it, without the run: for tests and the processes they start."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec

from treadle.storage.dataset import OutputSpec
from treadle.storage.output_manifest import OutputFile, OutputManifest, read_output_manifest
from treadle.storage.target import PartFile, Target, target_for


def spec_of(path: object, mode: Any = "error", backend: str = "jsonl") -> OutputSpec:
    """An output of jsonl files."""
    return OutputSpec(backend, str(path), mode=mode)


def staged(target: Target, *parts: Sequence[object]) -> tuple[PartFile, ...]:
    """A finished file for each part, one value a line, under names that are not the final ones."""
    return tuple(_staged(target.folder, number, values) for number, values in enumerate(parts))


def _staged(folder: Path, number: int, values: Sequence[object]) -> PartFile:
    content = "".join(f"{json.dumps(each)}\n" for each in values).encode()
    path = folder / f"staged-{number}"
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return PartFile(str(path), f"part-{number:05d}.jsonl", len(values), len(content), digest)


def manifest_of(
    files: Sequence[PartFile], path: object = "", columns: dict[str, str] | None = None
) -> OutputManifest:
    """The manifest of staged files."""
    listed = tuple(OutputFile(each.name, each.rows, each.bytes, each.sha256) for each in files)
    rows = sum(each.rows for each in listed)
    return OutputManifest("out", str(path), "jsonl", rows, listed, columns or {"id": "int64"})


def publish(
    path: object, mode: str, *parts: Sequence[object], keep: Path | None = None, columns: Any = None
) -> OutputManifest:
    """A whole run that writes these parts."""
    target = target_for("out", spec_of(path, mode), keep=keep)
    target.prepare()
    try:
        files = staged(target, *parts)
        published = target.publish(files, manifest_of(files, path, columns))
        assert target.settle() is None
    finally:
        target.discard()
    return published


def read(path: object) -> list[Any]:
    """The values of the output, by its manifest."""
    found: list[Any] = []
    for each in read_output_manifest(str(path)).files:
        with fsspec.open(f"{path}/{each.name}", "rb") as file:
            content = file.read()
        assert hashlib.sha256(content).hexdigest() == each.sha256
        found += [json.loads(line) for line in content.splitlines()]
    return found


def main() -> None:
    """`publishing.py PATH MODE VALUES...`: publish each of the values, JSON lists, one after the other."""
    path, mode, *values = sys.argv[1:]
    for each in values:
        publish(path, mode, json.loads(each))


if __name__ == "__main__":
    main()
