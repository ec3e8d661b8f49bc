"""The place of one output: where its files are staged, and how they appear there all at once."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from treadle.errors import DatabaseError
from treadle.storage.atomic import is_remote, remove, write_atomically, write_failure
from treadle.storage.dataset import OutputSpec
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.formats.format import Load
from treadle.storage.output_manifest import OutputManifest

_PUBLICATION = "publication.txt"
_TOKEN = "token.txt"  # noqa: S105 - the name of a file


@dataclass(frozen=True)
class PartFile:
    """A finished file on its way to its place: `path` is where it is staged, `name` its final name.

    `name` is without a folder, such as part-00003.parquet; `sha256` is in hex.
    """

    path: str
    name: str
    rows: int
    bytes: int
    sha256: str


class Target(Protocol):
    """Life: `check`, `prepare`, `publish`, `settle`; undone by `discard`, after `publish` by `withdraw`.

    Units write their files into `folder`, a local folder that nobody else looks into, under names that are
    not the final ones.
    """

    @property
    def folder(self) -> Path:
        """Where the files are staged."""

    def check(self) -> None:
        """See that the output may be made. Nothing is made, removed or locked.

        Raises ArtifactError for what is there and must not be touched.
        """

    def prepare(self) -> None:
        """Before anything is written: see that the output may be made, clear what killed writers left.

        Raises ArtifactError for what is there and must not be touched, RunError for what cannot be written.
        """

    def publish(self, files: Sequence[PartFile], manifest: OutputManifest) -> OutputManifest:
        """Everything appears at once. Returns the manifest as it is then, with the files of before that stay.

        Raises ArtifactError when another writer was there first, RunError when it cannot be written; then
        nothing has changed.
        """

    def settle(self) -> str | None:
        """All outputs are published: remove what this one replaced, after which nothing can be withdrawn.

        A sentence on what could not be removed, which is no reason to fail: nobody sees it.
        """

    def withdraw(self) -> None:
        """Take back what `publish` put in place, since another output failed."""

    def discard(self) -> None:
        """Remove what is staged, unless it is kept for a checkpoint."""


def target_for(name: str, spec: OutputSpec, *, keep: Path | None = None) -> Target:
    """The target of the output `name`. Nothing is touched yet.

    `keep` is a folder of a checkpoint to stage in: what lies there stays, also after `publish` and `discard`.

    Raises:
        ArgumentError: a path that this kind of output cannot have.
    """
    # Here, for each kind knows this module.
    from treadle.storage.target_local import LocalTarget
    from treadle.storage.target_objects import ObjectTarget
    from treadle.storage.target_swap import SwapTarget

    if write_backend_for(spec.backend).load is not None:
        return LoadTarget(name, spec, keep)
    if is_remote(spec.path):
        return ObjectTarget(name, spec, keep)
    return LocalTarget(name, spec, keep) if spec.mode == "error" else SwapTarget(name, spec, keep)


def check_targets(specs: Mapping[str, OutputSpec]) -> None:
    """See that a run which goes on from no checkpoint may make these outputs. Nothing is touched.

    Raises:
        ArtifactError: something is there that must not be touched, or the place is out of reach.
        DatabaseError: so is a database.
    """
    for name, spec in specs.items():
        target_for(name, spec).check()


def publication_folder(keep: Path | None) -> str:
    """The folder, inside an output, of the files of one publication: a new one, or that of a checkpoint.

    So a run that goes on after one that was killed sees what that one has published. Raises RunError.
    """
    fresh = f"data-{secrets.token_hex(4)}"
    return fresh if keep is None else _noted(keep / _PUBLICATION, fresh)


def _noted(note: Path, fresh: str) -> str:
    """What that file says; `fresh`, from now on, when there is none."""
    with write_failure(note):
        if not note.exists():
            write_atomically(note, fresh.encode())
        return note.read_text()


class StagingFolder:
    """A folder on this machine for files that go elsewhere; that of a checkpoint if `keep` is given."""

    def __init__(self, keep: Path | None) -> None:
        self._kept = keep is not None
        self.folder = keep or Path(tempfile.gettempdir()) / f"treadle-{secrets.token_hex(8)}"

    def make(self) -> None:
        """Make the folder, for this user alone. Raises RunError."""
        with write_failure(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=self._kept)

    def clear(self) -> None:
        """Remove it with what is in it, unless it is kept."""
        if not self._kept:
            remove(self.folder)


class LoadTarget:
    """Tables of a database: `publish` loads all files in one transaction, which cannot be withdrawn.

    A run that goes on by its checkpoint, after one that was killed, sees whether that one has loaded them.
    """

    def __init__(self, name: str, spec: OutputSpec, keep: Path | None) -> None:
        self._name = name
        self._spec = spec
        self._keep = keep
        self._token: str | None = None
        self._backend = write_backend_for(spec.backend)
        self._staging = StagingFolder(keep)
        self.folder = self._staging.folder

    def check(self) -> None:
        """Ask the database whether it will take the rows."""
        if self._backend.check is not None:
            self._backend.check(self._spec, None)

    def prepare(self) -> None:
        """Ask the database whether it will take the rows, or has them from a run on the same checkpoint."""
        self._staging.make()
        if self._keep is not None:
            self._token = _noted(self._keep / _TOKEN, secrets.token_hex(16))
        if self._backend.check is not None:
            self._backend.check(self._spec, self._token)

    def publish(self, files: Sequence[PartFile], manifest: OutputManifest) -> OutputManifest:
        """Load the files in their order, unless that has been done."""
        assert self._backend.load is not None  # noqa: S101 - `target_for` asked
        content = hashlib.sha256(manifest.to_json()).hexdigest()
        load = None if self._token is None else Load(self._token, content)
        self._backend.load(self._spec, [Path(each.path) for each in files], load)
        return manifest

    def settle(self) -> str | None:
        """Nothing was replaced outside of the transaction."""
        return None

    def withdraw(self) -> None:
        """Rows that are committed stay; so whoever publishes several outputs leaves these to the end."""

    def forget(self) -> str | None:
        """No run will come back: remove what the database knows of this one. A sentence when that failed."""
        try:
            if self._token is not None and self._backend.forget is not None:
                self._backend.forget(self._spec, self._token)
        except DatabaseError as error:
            return f"output {self._name!r}: the note of its load is still there: {error}"
        return None

    def discard(self) -> None:
        """Remove what is staged."""
        self._staging.clear()
