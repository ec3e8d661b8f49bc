"""Where a session writes until its commit: hidden folders beside its outputs, or those of its checkpoint."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from treadle.kernel.unwind import Unwind
from treadle.storage.atomic import is_remote, local_path, remove, write_failure
from treadle.storage.checkpoint import OpenCheckpoint
from treadle.storage.dataset import OutputSpec
from treadle.storage.file_lock import LiveFolder, clear_dead
from treadle.storage.output_manifest import MANIFEST_NAME
from treadle.storage.quarantine import quarantine_for
from treadle.storage.target import target_for
from treadle.storage.unit_writer import STAGED_PREFIX, StagedPlace, Staging


class SessionPlaces:
    """The targets of the outputs, the place of the quarantine, and the folders for what has no target.

    Nothing is touched before `prepare`, but for temporary folders where an output is not on this machine.
    Raises ArgumentError for a path that this kind of output cannot have.
    """

    def __init__(
        self,
        outputs: Mapping[str, OutputSpec],
        scratch: Mapping[str, OutputSpec],
        quarantine: str | None,
        kept: OpenCheckpoint | None,
    ) -> None:
        self._outputs = outputs
        self._kept = kept
        self._there: frozenset[str] = frozenset()
        self._live: list[LiveFolder] = []
        self.quarantine = None if quarantine is None else quarantine_for(quarantine)
        self.targets = {
            name: target_for(name, spec, keep=self._keep(name, spec)) for name, spec in outputs.items()
        }
        hidden = {name: self._hidden(spec.path, name) for name, spec in scratch.items()}
        rejects = None if quarantine is None else self._hidden(quarantine, "rejects")
        self._folders = [*hidden.values(), *([rejects] if rejects else [])]
        self.staging = self._staging(scratch, hidden, rejects)

    def prepare(self) -> None:
        """Clear what killed writers left, see that everything can be written, and make the folders.

        Raises ArtifactError for what is there and must not be touched, RunError for what cannot be written,
        ArgumentError for a storage that is not known here.
        """
        if self._kept is not None:
            self._clear_unknown(self._kept)
            self._kept.start()
            self._there = frozenset(name for name in self.targets if self._was_published(self._kept, name))
        if self.quarantine is not None:
            self.quarantine.prepare()
        for name, target in self.targets.items():
            if name not in self._there:
                target.prepare()
            else:
                clear_dead(local_path(self._outputs[name].path))  # left by the commit that was cut
        for live in self._live:
            live.claim()
        for folder in (*self._folders, *(self.targets[name].folder for name in self._there)):
            with write_failure(folder):
                folder.mkdir(parents=True, exist_ok=True)

    def stands(self, name: str) -> bool:
        """Whether a commit that was cut has put the output in place as it is to be.

        One with other content goes away: something that was read has changed since.
        """
        if name not in self._there or self._kept is None:
            return False
        if self._was_published(self._kept, name):
            return True
        self.targets[name].withdraw()
        return False

    def discard_into(self, unwind: Unwind) -> None:
        """Have `unwind` remove what is staged, but for what a checkpoint keeps."""
        for target in self.targets.values():
            unwind.push(target.discard)
        if self.quarantine is not None:
            unwind.push(self.quarantine.discard)
        for live in self._live:
            unwind.push(live.release)
        if self._kept is None:
            for folder in self._folders:
                unwind.push(remove, folder)

    def _keep(self, name: str, spec: OutputSpec) -> Path | None:
        """Where a checkpoint keeps the staged files of an output: on the file system where they will be."""
        if self._kept is None:
            return None
        if is_remote(spec.path):
            return self._kept.folder / "staged" / name
        target = local_path(spec.path)
        return target.with_name(f".{target.name}.units")

    def _hidden(self, path: str, name: str) -> Path:
        """The folder for staged files of something that has no target."""
        if self._kept is not None:
            return self._kept.folder / "staged" / name
        if is_remote(path):
            return Path(tempfile.mkdtemp(prefix="treadle-"))
        live = LiveFolder(local_path(path))
        self._live.append(live)
        return live.path

    def _staging(
        self, scratch: Mapping[str, OutputSpec], hidden: Mapping[str, Path], rejects: Path | None
    ) -> Staging:
        places = {
            **{
                name: StagedPlace(str(each.folder), self._outputs[name])
                for name, each in self.targets.items()
            },
            **{name: StagedPlace(str(folder), scratch[name]) for name, folder in hidden.items()},
        }
        records = None if self._kept is None else str(self._kept.records)
        return Staging(places, None if rejects is None else str(rejects), records)

    def _clear_unknown(self, kept: OpenCheckpoint) -> None:
        """Remove what killed writers left beside finished units; all, if the recipe is another."""
        known = kept.known_files() if kept.same_recipe else frozenset()
        for folder in (*(target.folder for target in self.targets.values()), *self._folders):
            if not kept.same_recipe:
                remove(folder)
                continue
            for each in folder.iterdir() if folder.is_dir() else ():
                if each.name.startswith(STAGED_PREFIX) and str(each) not in known:
                    remove(each)

    def _was_published(self, kept: OpenCheckpoint, name: str) -> bool:
        """Whether a commit that was cut put that output in place; other modes see it themselves."""
        spec = self._outputs[name]
        if is_remote(spec.path) or spec.mode != "error":
            return False
        try:
            return kept.planned(name, (local_path(spec.path) / MANIFEST_NAME).read_bytes())
        except OSError:
            return False
