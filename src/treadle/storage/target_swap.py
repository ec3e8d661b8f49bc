"""A local output that may be there before, modes `overwrite` and `append`: its manifest is replaced at once.

The files of each publication are in a folder of their own, `data-<token>`; `_manifest.json` says which count.
It is replaced while a lock is held, so that no publication is lost; what a killed writer left is removed by
the next one, unless a writer lives that may still come back to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from treadle.errors import ArtifactError, RunError
from treadle.kernel.unwind import Unwind
from treadle.storage.atomic import local_path, remove, sync_folder, write_atomically, write_failure
from treadle.storage.dataset import OutputSpec
from treadle.storage.file_lock import LiveFolder, clear_dead, locked
from treadle.storage.output_manifest import MANIFEST_NAME, OutputFile, OutputManifest, parse_output_manifest
from treadle.storage.publication import Publication, check_backend, folders, lost_race, planned
from treadle.storage.target import PartFile, publication_folder
from treadle.storage.target_local import appear, assemble, vanish

_OURS = re.compile(r"data-[0-9a-f]{8}|part-[0-9]{5,}.*|\._manifest\.json\.staging-.*")


class SwapTarget:
    """A folder, mode `overwrite` or `append`. See `Target`."""

    def __init__(self, name: str, spec: OutputSpec, keep: Path | None) -> None:
        self._name = name
        self._spec = spec
        self._target = local_path(spec.path)
        self._keep = keep
        self._live = LiveFolder(self._target)
        self.folder = keep or self._live.path / "units"
        self._seen: bytes | None = None
        self._done: Publication | None = None

    def check(self) -> None:
        """Refuse what is no output, or one that cannot be added to."""
        with write_failure(self._target):
            present = self._present()
            if present is not None:
                self._check_appendable(present)

    def prepare(self) -> None:
        """Remember what is there, clear what killed writers left, make the hidden folder."""
        with write_failure(self._target), self._locked():
            self._seen = self._present()
            if self._seen is not None:
                self._check_appendable(self._seen)
            if clear_dead(self._target):
                self._clear_orphans()
            self._live.claim()
            self.folder.mkdir(parents=True, exist_ok=True)

    def publish(self, files: Sequence[PartFile], manifest: OutputManifest) -> OutputManifest:
        """Replace the manifest, unless a run on the same checkpoint, killed after it, has done so.

        Raises ArtifactError when another writer has published since `prepare` (overwrite), or what is there
        does not go with the rows (append).
        """
        with write_failure(self._target), self._locked(), Unwind() as unwind:
            present = self._present()
            folder = publication_folder(self._keep)
            if present is not None and folder in folders(self._parsed(present).files):
                return self._parsed(present)
            if self._spec.mode == "overwrite" and present != self._seen:
                raise lost_race(self._name, str(self._target))
            done = planned(present, manifest, folder, self._spec.mode)
            self._put(done, files, folder, unwind)
            unwind.release()
            self._done = done
        return done.manifest

    def settle(self) -> str | None:
        """Remove the files that were replaced. What stays is removed by the next writer."""
        done, self._done = self._done, None
        if done is None or not done.replaced:
            return None
        try:
            with write_failure(self._target), self._locked():
                self._remove(done.replaced, self._present())
        except RunError as error:
            return f"output {self._name!r}: files that were replaced are still there: {error}"
        return None

    def withdraw(self) -> None:
        """Put back what was there, but for what others have appended meanwhile, which stays."""
        done, self._done = self._done, None
        if done is None:
            return
        with write_failure(self._target), self._locked():
            present = self._present()
            left = None if present is None else done.without(present)
            if present is not None and left is None:
                vanish(self._target)
            elif left is not None and left != present:
                write_atomically(self._target / MANIFEST_NAME, left)
                self._remove(done.added, left)

    def discard(self) -> None:
        """Remove what is staged; from now on this writer counts as dead."""
        remove(self._live.path)
        self._live.release()

    def _put(self, done: Publication, files: Sequence[PartFile], folder: str, unwind: Unwind) -> None:
        whole = self._live.path / "whole"
        unwind.push(remove, whole)
        assemble(whole / folder, files, move=self._keep is None)
        if done.before is None:
            write_atomically(whole / MANIFEST_NAME, done.manifest.to_json())
            appear(whole, self._target, self._name)
            sync_folder(self._target.parent)
            return
        remove(self._target / folder)  # of a run on the same checkpoint that was killed just here
        unwind.push(remove, self._target / folder)
        (whole / folder).rename(self._target / folder)
        sync_folder(self._target)
        unwind.push(self._undo, done)
        write_atomically(self._target / MANIFEST_NAME, done.manifest.to_json())

    def _undo(self, done: Publication) -> None:
        # The manifest may be replaced although that failed, when only the last sync to disk did.
        if done.before is not None and self._present() == done.manifest.to_json():
            write_atomically(self._target / MANIFEST_NAME, done.before)

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self._target.with_name(f".{self._target.name}.lock"))

    def _present(self) -> bytes | None:
        """The manifest; None when nothing is there. Raises ArtifactError for what is no committed output."""
        try:
            return (self._target / MANIFEST_NAME).read_bytes()
        except NotADirectoryError:
            pass
        except FileNotFoundError:
            if self._target.is_dir() and not any(self._target.iterdir()):
                return None
        if not os.path.lexists(self._target):
            return None
        raise ArtifactError(
            f"output {self._name!r}: {self._target} is there without a {MANIFEST_NAME}, so it is no output "
            f"of treadle, and mode {self._spec.mode} leaves it alone; remove it or choose another path"
        )

    def _check_appendable(self, present: bytes) -> None:
        manifest = self._parsed(present)
        if self._spec.mode == "append":
            check_backend(manifest, self._name, self._spec.backend)

    def _clear_orphans(self) -> None:
        """Remove what killed writers left inside: folders and files with names that only treadle gives."""
        if self._seen is not None:
            used = folders(self._parsed(self._seen).files)
            for each in sorted(self._target.iterdir()):
                if _OURS.fullmatch(each.name) and each.name not in used:
                    remove(each)

    def _remove(self, files: Sequence[OutputFile], present: bytes | None) -> None:
        """Remove files, and the folders they are in, unless the manifest has them."""
        used = set() if present is None else folders(self._parsed(present).files)
        for name in sorted(folders(files) - used):
            remove(self._target / name)

    def _parsed(self, content: bytes) -> OutputManifest:
        return parse_output_manifest(content, str(self._target))
