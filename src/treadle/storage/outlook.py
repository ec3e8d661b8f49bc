"""What a run would find before it begins: outputs that are there, and units that a checkpoint keeps.

Nothing is made, removed or locked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from treadle.errors import ArtifactError
from treadle.storage.atomic import is_remote, local_path
from treadle.storage.checkpoint import HEAD, Checkpoint, read_record, recipe_of
from treadle.storage.conditional import ConditionalObject
from treadle.storage.dataset import OutputSpec
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.output_manifest import MANIFEST_NAME, OutputManifest, parse_output_manifest
from treadle.storage.unit_record import StagedFile


@dataclass(frozen=True)
class Present:
    """There is something at the place of an output; `manifest` None: it is no output of treadle."""

    manifest: OutputManifest | None


@dataclass(frozen=True)
class Kept:
    """What is in a checkpoint: the identities of its units, by phase, and whether they are of the recipe."""

    same_recipe: bool
    units: Mapping[str, frozenset[str]]


def present_at(spec: OutputSpec) -> Present | None:
    """What is at the place of an output. None: nothing, or it is a database, which says so at the start.

    Raises ArtifactError when the storage is out of reach.
    """
    if write_backend_for(spec.backend).load is not None:
        return None
    content = _remote_manifest(spec.path) if is_remote(spec.path) else _local_manifest(spec.path)
    if content is None:
        return None
    try:
        return Present(parse_output_manifest(content, spec.path))
    except ArtifactError:
        return Present(None)


def kept_in(
    checkpoint: Checkpoint, specs: Mapping[str, OutputSpec], identities: Collection[str]
) -> Kept | None:
    """What a checkpoint keeps of units of these identities; None when it keeps nothing."""
    folder = local_path(checkpoint.path)
    records = [read_record(each) for each in sorted((folder / "units").glob("*.json"))]
    if not records:
        return None
    done: dict[str, set[str]] = {}
    for each in records:
        if each is not None and each.unit.identity in identities and all(map(_is_there, each.all_files)):
            done.setdefault(each.phase.partition("-")[0], set()).add(each.unit.identity)
    units = {phase: frozenset(found) for phase, found in done.items()}
    return Kept(_head(folder) == recipe_of(checkpoint, specs), units)


def _head(folder: Path) -> object:
    try:
        return json.loads((folder / HEAD).read_bytes())
    except (OSError, ValueError):
        return None


def _is_there(file: StagedFile) -> bool:
    """By its size alone: to sum up all files takes long."""
    try:
        return Path(file.path).stat().st_size == file.bytes
    except OSError:
        return False


def _remote_manifest(url: str) -> bytes | None:
    found = ConditionalObject(f"{url.rstrip('/')}/{MANIFEST_NAME}").read()
    return None if found is None else found.content


def _local_manifest(path: str) -> bytes | None:
    """The content of the manifest, empty when something else is there."""
    target = local_path(path)
    try:
        return (target / MANIFEST_NAME).read_bytes()
    except OSError:
        empty = target.is_dir() and not any(target.iterdir())
        return None if empty or not (target.exists() or target.is_symlink()) else b""
