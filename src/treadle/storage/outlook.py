"""What a run would find before it begins: outputs that are there, and units that a checkpoint keeps.

Nothing is made, removed or locked.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from treadle.errors import ArtifactError
from treadle.storage.atomic import is_remote, local_path
from treadle.storage.checkpoint import Checkpoint, is_of_recipe, recipe_of, records_in, row_journal_path
from treadle.storage.conditional import ConditionalObject
from treadle.storage.dataset import OutputSpec
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.output_manifest import MANIFEST_NAME, OutputManifest, parse_output_manifest
from treadle.storage.row_journal import rows_in
from treadle.storage.unit_record import StagedFile, UnitRecord


@dataclass(frozen=True)
class Present:
    """There is something at the place of an output; `manifest` None: it is no output of treadle."""

    manifest: OutputManifest | None


@dataclass(frozen=True)
class Kept:
    """What is in a checkpoint: the identities of its units, by phase, and whether they are of the recipe.

    `conditional` are the phases whose units count only if something else than the content of the units, such
    as a side input, is as it was; of these the most are given that can count together. `rows` is how many
    single rows are in its journal.
    """

    same_recipe: bool
    units: Mapping[str, frozenset[str]]
    conditional: frozenset[str] = frozenset()
    rows: int = 0


def present_at(spec: OutputSpec) -> Present | None:
    """What is at the place of an output. None: nothing, or it is a database, which says so at the start.

    Raises ArtifactError when the place cannot be looked at.
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
    records, rows = records_in(folder), rows_in(row_journal_path(folder))
    if not records and not rows:
        return None
    done = [each for each in records if each is not None and _counts(each, identities)]
    together: dict[tuple[str, str], set[str]] = {}
    for each in done:
        together.setdefault((each.phase, each.depends), set()).add(each.unit.identity)
    units: dict[str, frozenset[str]] = {}
    for (phase, _), found in together.items():
        units[phase] = max(units.get(phase, frozenset()), frozenset(found), key=len)
    conditional = frozenset(each.phase for each in done if each.depends)
    return Kept(is_of_recipe(folder, recipe_of(checkpoint, specs)), units, conditional, rows)


def _counts(record: UnitRecord, identities: Collection[str]) -> bool:
    return record.unit.identity in identities and all(map(_is_there, record.all_files))


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
        return _manifest_in(target)
    except OSError as error:
        raise ArtifactError(
            f"cannot tell what is at {target}: {error}; see that this user may read there, or choose "
            "another path"
        ) from error


def _manifest_in(target: Path) -> bytes | None:
    try:
        return (target / MANIFEST_NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        empty = target.is_dir() and not any(target.iterdir())
        return None if empty or not os.path.lexists(target) else b""
