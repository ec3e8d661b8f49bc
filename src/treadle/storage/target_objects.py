"""An output on an object store: its files are uploaded, and `_manifest.json`, put last, says which count.

The manifest is written under the condition that it is still the one that was read, so that of two writers at
once none is lost without notice. What a killed writer has uploaded is never seen, and is not removed by
others, who cannot know whether it lives: it is in folders `data-<token>` that the manifest does not name.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from treadle.errors import ArtifactError
from treadle.kernel.unwind import Unwind
from treadle.storage.conditional import ConditionalObject, Tagged, check_kind
from treadle.storage.dataset import OutputSpec
from treadle.storage.output_manifest import MANIFEST_NAME, OutputFile, OutputManifest, parse_output_manifest
from treadle.storage.publication import Publication, check_backend, folders, lost_race, planned
from treadle.storage.reach import find, path_at, reach
from treadle.storage.target import PartFile, StagingFolder, publication_folder

_AT_ONCE = 4  # a file of up to 100 MB is in memory while it is sent


class ObjectTarget:
    """A prefix of an object store. See `Target`."""

    def __init__(self, name: str, spec: OutputSpec, keep: Path | None) -> None:
        self._name = name
        self._spec = spec
        self._url = spec.path.rstrip("/")
        self._keep = keep
        self._manifest = ConditionalObject(f"{self._url}/{MANIFEST_NAME}")
        self._staging = StagingFolder(keep)
        self.folder = self._staging.folder
        self._folder: str | None = None
        self._seen: Tagged | None = None
        self._done: Publication | None = None

    def check(self) -> None:
        """Refuse what is there, unless the mode says what becomes of it; so for `prepare`'s ArgumentError."""
        check_kind(self._url)
        self._look()

    def prepare(self) -> None:
        """Remember what is there and make the local folder.

        Raises ArgumentError for a kind of storage that outputs cannot be written to.
        """
        self._manifest.check()
        self._seen = self._look()
        self._staging.make()

    def publish(self, files: Sequence[PartFile], manifest: OutputManifest) -> OutputManifest:
        """Upload the files, then write the manifest, unless a run on the same checkpoint has done so.

        Raises ArtifactError when another writer was there since `prepare` (but for mode append), what is
        there does not go with the rows (append), or the storage is out of reach.
        """
        folder = publication_folder(self._keep)
        present = self._manifest.read()
        if present is not None and folder in folders(self._parsed(present).files):
            return self._parsed(present)
        new = planned(None, manifest, folder, self._spec.mode).added
        with Unwind() as unwind:
            unwind.push(self._remove, new)
            self._upload(files, folder)
            self._done = self._put(manifest, folder, unwind)
            unwind.release()
        return self._done.manifest

    def settle(self) -> str | None:
        """Remove the files that were replaced."""
        done, self._done = self._done, None
        try:
            self._remove(() if done is None else done.replaced)
        except ArtifactError as error:
            return f"output {self._name!r}: files that were replaced are still there: {error}"
        return None

    def withdraw(self) -> None:
        """Put back what was there, but for what others have appended meanwhile, which stays."""
        done, self._done = self._done, None
        if done is not None:
            self._take_back(done)
            self._remove(done.added)

    def discard(self) -> None:
        """Remove what is staged."""
        self._staging.clear()

    def _look(self) -> Tagged | None:
        seen = self._manifest.read()
        if seen is None:
            self._check_empty()
        else:
            self._check_present(seen)
        return seen

    def _put(self, manifest: OutputManifest, folder: str, unwind: Unwind) -> Publication:
        while True:
            present = self._manifest.read() if self._spec.mode == "append" else self._seen
            before = None if present is None else present.content
            done = planned(before, manifest, folder, self._spec.mode)
            if self._written(done, present, unwind) or self._is_there(folder):
                return done
            if self._spec.mode != "append":
                raise lost_race(self._name, self._url)

    def _written(self, done: Publication, present: Tagged | None, unwind: Unwind) -> bool:
        try:
            return self._manifest.put(done.manifest.to_json(), None if present is None else present.tag)
        except BaseException:
            # It may have been written all the same, or still be on its way, and then needs its files.
            unwind.release()
            unwind.push(self._take_back, done)
            raise

    def _is_there(self, folder: str) -> bool:
        """Whether this publication stands though it was refused, when the answer to a first try was lost."""
        present = self._manifest.read()
        return present is not None and folder in folders(self._parsed(present).files)

    def _take_back(self, done: Publication) -> None:
        while not self._taken_back(done):
            pass  # another writer was faster: so some writer always gets on

    def _taken_back(self, done: Publication) -> bool:
        present = self._manifest.read()
        if present is None:
            return True
        left = done.without(present.content)
        if left is None:
            return self._manifest.remove(present.tag)
        return left == present.content or self._manifest.put(left, present.tag)

    def _check_present(self, present: Tagged) -> None:
        manifest = self._parsed(present)
        if self._spec.mode == "append":
            check_backend(manifest, self._name, self._spec.backend)
        if self._spec.mode == "error" and not self._is_mine(manifest):
            raise self._refused(
                "is already there and is never overwritten", ", or say so by mode: overwrite or append"
            )

    def _is_mine(self, manifest: OutputManifest) -> bool:
        """Whether a run on the same checkpoint, killed after it, has published it."""
        return self._keep is not None and publication_folder(self._keep) in folders(manifest.files)

    def _check_empty(self) -> None:
        """Raises ArtifactError for objects that are no leftovers of writers."""
        for path in reach(self._url).ask(self._listed, "list", self._url):
            if not path.startswith(("data-", f"{MANIFEST_NAME}.probe-")):
                raise self._refused(
                    f"is there without a {MANIFEST_NAME} ({path}), so it is no output of treadle"
                )

    def _listed(self, fs: Any) -> list[str]:
        start = path_at(fs, self._url)
        return sorted(each[len(start) + 1 :] for each in find(fs, start))

    def _refused(self, why: str, modes: str = "") -> ArtifactError:
        return ArtifactError(
            f"output {self._name!r}: {self._url} {why}; remove it or choose another path{modes}"
        )

    def _upload(self, files: Sequence[PartFile], folder: str) -> None:
        def upload(file: PartFile) -> None:
            url = f"{self._url}/{folder}/{file.name}"
            reach(url).ask(lambda fs: fs.put_file(file.path, path_at(fs, url)), "upload", url)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(upload, files):
                pass

    def _remove(self, files: Sequence[OutputFile]) -> None:
        for each in files:
            ConditionalObject(f"{self._url}/{each.name}").remove_always()

    def _parsed(self, present: Tagged) -> OutputManifest:
        return parse_output_manifest(present.content, self._url)
