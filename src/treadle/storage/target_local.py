"""A local output that must not be there before: a hidden folder beside it, made whole, and one rename."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from treadle.errors import ArtifactError
from treadle.kernel.unwind import Unwind
from treadle.storage.atomic import (
    local_path,
    remove,
    staging_path,
    sync_folder,
    write_atomically,
    write_failure,
)
from treadle.storage.dataset import OutputSpec
from treadle.storage.file_lock import LiveFolder, clear_dead
from treadle.storage.output_manifest import MANIFEST_NAME, OutputManifest
from treadle.storage.target import PartFile

_NO_LINKS = frozenset(
    (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES)
)


class LocalTarget:
    """A folder, mode `error`. See `Target`."""

    def __init__(self, name: str, spec: OutputSpec, keep: Path | None) -> None:
        self._name = name
        self._target = local_path(spec.path)
        self._live = LiveFolder(self._target)
        self.folder = keep or self._live.path / "units"

    def check(self) -> None:
        """Refuse what is there."""
        check_free(self._target, self._name)

    def prepare(self) -> None:
        """Refuse what is there; clear what killed writers left; make the hidden folder."""
        self.check()
        with write_failure(self._target):
            clear_dead(self._target)
            self._live.claim()
            self._live.path.mkdir()
            self.folder.mkdir(parents=True, exist_ok=True)

    def publish(self, files: Sequence[PartFile], manifest: OutputManifest) -> OutputManifest:
        """Rename a whole folder into place. Raises ArtifactError when something else has appeared there."""
        check_free(self._target, self._name)
        whole = self._live.path / "whole"
        with write_failure(self._target), Unwind() as unwind:
            unwind.push(remove, whole)
            assemble(whole, files, move=self.folder.parent == self._live.path)
            write_atomically(whole / MANIFEST_NAME, manifest.to_json())
            appear(whole, self._target, self._name)
            unwind.release()
            sync_folder(self._target.parent)
        return manifest

    def settle(self) -> str | None:
        """Nothing was replaced."""
        return None

    def withdraw(self) -> None:
        """Take the folder away."""
        vanish(self._target)

    def discard(self) -> None:
        """Remove what is staged."""
        remove(self._live.path)
        self._live.release()


def check_free(target: Path, name: str) -> None:
    """Raises ArtifactError when there is something else than an empty folder."""
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise _taken(target, name)


def assemble(folder: Path, files: Sequence[PartFile], *, move: bool) -> None:
    """Make a folder of the files under their final names, and sync it; they are moved, or else stay too."""
    folder.mkdir(parents=True)
    for each in files:
        if move:
            Path(each.path).rename(folder / each.name)
        else:
            link_or_copy(Path(each.path), folder / each.name)
    sync_folder(folder)


def appear(folder: Path, target: Path, name: str) -> None:
    """Rename a folder to where nothing or an empty folder is; ArtifactError when that has changed."""
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise _taken(target, name) from error
        raise


def vanish(folder: Path) -> None:
    """Take a folder away at once, then remove what is in it."""
    hidden = staging_path(folder)
    folder.rename(hidden)
    remove(hidden)


def _taken(target: Path, name: str) -> ArtifactError:
    # The other modes leave alone what is no output of treadle.
    ours = (target / MANIFEST_NAME).is_file()
    to_do = (
        "remove it, choose another path, or say so by mode: overwrite or append"
        if ours
        else f"remove it, or choose another path: without a {MANIFEST_NAME} it is no output of treadle"
    )
    return ArtifactError(f"output {name!r}: {target} is already there and is never overwritten; {to_do}")


def link_or_copy(staged: Path, final: Path) -> None:
    """Give a file a second name, or a copy where the file system has no links. Raises OSError."""
    try:
        os.link(staged, final)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _copy(staged, final)


def _copy(staged: Path, final: Path) -> None:
    with staged.open("rb") as source, final.open("xb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
        sink.flush()
        os.fsync(sink.fileno())
