"""One output of a session on its way: part files in a hidden folder, a manifest, one rename."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from treadle.errors import ArtifactError, RunError
from treadle.storage.atomic import (
    clear_leftovers,
    local_path,
    remove,
    staging_path,
    sync_folder,
    write_atomically,
    write_failure,
)
from treadle.storage.dataset import Dataset, WorkUnit
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.formats.format import PartWriter
from treadle.storage.output_manifest import MANIFEST_NAME, OutputFile, OutputManifest
from treadle.storage.schema import widen


@dataclass
class _OpenPart:
    unit: WorkUnit
    path: Path
    writer: PartWriter
    rows: int = 0


class StagedOutput:
    """Life: `stage`, `write`..., `finish`, `publish`; undone by `discard`, after `publish` by `withdraw`."""

    def __init__(self, name: str, dataset: Dataset) -> None:
        self._name = name
        self._dataset = dataset
        self._target = local_path(dataset.path)
        self._backend = write_backend_for(dataset.backend)
        self._suffix, self._codec = self._backend.codec(dataset.compression)
        _check_free(self._target, name)
        self._staging = staging_path(self._target)
        self._schema = pa.schema([])
        self._part: _OpenPart | None = None
        self._files: dict[int, OutputFile] = {}
        self._whole = True

    def stage(self) -> None:
        """Clear what a killed writer left, and make the hidden folder."""
        with write_failure(self._target):
            clear_leftovers(self._target)
            self._staging.mkdir(parents=True)

    def write(self, unit: WorkUnit, rows: pa.Table) -> None:
        """Append rows to the unit's file; see `Session.write`."""
        self._check_whole()
        part = self._part_for(unit)
        with write_failure(part.path):
            self._widen(rows.schema)
            self._whole = False
            part.writer.write(rows)
        self._whole = True
        part.rows += rows.num_rows

    def finish(self) -> OutputManifest:
        """Finish the last file and write the manifest, all still hidden."""
        self._check_whole()
        self._close_part()
        manifest = self._manifest()
        with write_failure(self._staging / MANIFEST_NAME):
            write_atomically(self._staging / MANIFEST_NAME, manifest.to_json())
        return manifest

    def publish(self) -> None:
        """Rename the folder into place. Raises ArtifactError when something else has appeared there."""
        _check_free(self._target, self._name)
        with write_failure(self._target):
            self._staging.rename(self._target)
            sync_folder(self._target.parent)

    def withdraw(self) -> None:
        """Take back what `publish` put in place."""
        self._target.rename(self._staging)
        remove(self._staging)

    def discard(self) -> None:
        """Let go of the open file and remove the hidden folder."""
        if self._part is not None:
            self._part.writer.abandon()
            self._part = None
        remove(self._staging)

    def _check_whole(self) -> None:
        if not self._whole:
            raise RunError(f"output {self._name!r}: a write failed, so its rows are not all there")

    def _part_for(self, unit: WorkUnit) -> _OpenPart:
        if self._part is not None and self._part.unit == unit:
            return self._part
        self._close_part()
        if unit.index in self._files:
            raise RunError(
                f"output {self._name!r}: {self._files[unit.index].name} is finished, yet rows of unit "
                f"{unit.id} came; write one unit after the other, each with an index of its own"
            )
        path = self._staging / f"part-{unit.index:05d}{self._suffix}"
        with write_failure(path):
            self._part = _OpenPart(unit, path, self._backend.open(path, self._codec))
        return self._part

    def _close_part(self) -> None:
        if self._part is None:
            return
        part = self._part
        with write_failure(part.path):
            part.writer.close()
            with part.path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = part.path.stat().st_size
        self._files[part.unit.index] = OutputFile(part.path.name, part.rows, size, digest)
        self._part = None

    def _widen(self, schema: pa.Schema) -> None:
        wider = widen(self._schema, schema)
        reason = None if wider is self._schema else self._backend.unwritable(wider)
        if reason is not None:
            raise ValueError(reason)
        self._schema = wider

    def _manifest(self) -> OutputManifest:
        files = tuple(self._files[index] for index in sorted(self._files))
        return OutputManifest(
            output=self._name,
            path=str(self._target),
            backend=self._dataset.backend,
            rows=sum(each.rows for each in files),
            files=files,
            columns={each.name: str(each.type) for each in self._schema},
        )


def _check_free(target: Path, name: str) -> None:
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise ArtifactError(
            f"output {name!r}: {target} is already there and is never overwritten; "
            "remove it or choose another path"
        )
