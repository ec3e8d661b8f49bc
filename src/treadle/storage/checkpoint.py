"""Finished units of a run, kept until the run commits: a run that was killed goes on where it was.

A folder with a head, which says for which recipe the units were done, and a small file for each unit, written
by whoever did it; where a single row takes long, also a journal of rows. One run at a time has it: the lock
is the kernel's, so a killed run does not hold it.
"""

from __future__ import annotations

import glob
import hashlib
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from treadle.errors import ArgumentError, ArtifactError
from treadle.kernel.unwind import Unwind
from treadle.storage.atomic import is_remote, local_path, remove, sync_folder, write_atomically, write_failure
from treadle.storage.dataset import OutputSpec, WorkUnit
from treadle.storage.file_lock import FileLock
from treadle.storage.output_manifest import OutputManifest
from treadle.storage.row_journal import RowJournal
from treadle.storage.unit_record import StagedFile, UnitRecord
from treadle.storage.unit_writer import record_path

_HEAD = "head.json"
_RECORDS = "units"
_ENDED = ".ended-"
_LOCK = "lock"
_COMMIT = "commit.json"
_ROWS = "rows.journal"


@dataclass(frozen=True)
class Checkpoint:
    """Where finished units are kept (a local folder), and for which recipe they count.

    `fingerprint` changes whenever the rows that a unit gives may change.
    """

    path: str
    fingerprint: str


class OpenCheckpoint:
    """A checkpoint that this session has for itself.

    Raises:
        ArgumentError: its folder is not local.
        ArtifactError: another run has it.
    """

    def __init__(self, checkpoint: Checkpoint, specs: Mapping[str, OutputSpec]) -> None:
        if is_remote(checkpoint.path):
            raise ArgumentError(
                f"cannot keep a checkpoint at {checkpoint.path}: expected a folder of this machine; "
                "give one by checkpoint.path, or switch it off"
            )
        self.folder = local_path(checkpoint.path)
        self.records = self.folder / _RECORDS
        self._recipe = recipe_of(checkpoint, specs)
        self._lock = FileLock(self.folder / _LOCK)
        self._fresh = not self.folder.exists()
        self._take()

    @property
    def same_recipe(self) -> bool:
        """Whether the units that are kept were done for this recipe."""
        return is_of_recipe(self.folder, self._recipe)

    @property
    def keeps_nothing(self) -> bool:
        """Whether it was made by this session, and no unit and no row is in it."""
        return (
            self._fresh and not any(self.records.glob("*.json")) and not _size(row_journal_path(self.folder))
        )

    def start(self) -> None:
        """Forget units of another recipe; the caller has removed their files."""
        with write_failure(self.folder):
            for each in self.folder.parent.glob(f"{glob.escape(self.folder.name)}{_ENDED}*"):
                remove(each)
        if self.same_recipe:
            return
        with write_failure(self.folder):
            remove(self.folder / _HEAD)  # first: what is half cleared counts for no recipe
            for each in self.records.iterdir():  # the folder stays: others look into it meanwhile
                remove(each)
            remove(self.folder / _COMMIT)
            write_atomically(self.folder / _HEAD, json.dumps(self._recipe).encode())

    def known_files(self) -> frozenset[str]:
        """The paths of the files that records of units name."""
        records = records_in(self.folder)
        return frozenset(file.path for record in records if record for file in record.all_files)

    def find(self, phase: str, unit: WorkUnit, depends: str) -> UnitRecord | None:
        """The record of a unit whose files are whole; one that is damaged is removed."""
        path = record_path(str(self.records), phase, unit, depends)
        if not unit.identity or not path.exists():
            return None
        record = _read_record(path)
        if record is not None and all(map(_whole, record.all_files)):
            return record.of(unit)
        remove(path)  # a damaged record is as good as none: the unit is done again
        return None

    def open_row_journal(self) -> RowJournal:
        """The journal of single rows, which the caller closes. Raises RunError when it cannot be written."""
        return RowJournal(row_journal_path(self.folder))

    def plan_commit(self, manifests: Mapping[str, OutputManifest]) -> None:
        """Note, before anything appears, what is going to: a commit that is cut goes on from it."""
        content = {name: hashlib.sha256(each.to_json()).hexdigest() for name, each in manifests.items()}
        with write_failure(self.folder):
            write_atomically(self.folder / _COMMIT, json.dumps(content).encode())

    def planned(self, name: str, content: bytes) -> bool:
        """Whether a commit was going to put a manifest of that content in place."""
        try:
            planned = json.loads((self.folder / _COMMIT).read_bytes())
            return bool(planned[name] == hashlib.sha256(content).hexdigest())
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def remove(self) -> None:
        """Everything is in place: from one moment on nothing of this run counts any more."""
        with write_failure(self.folder):
            # One act, for whoever finds the half of it would take the run for one that has not published.
            ended = self.folder.with_name(f"{self.folder.name}{_ENDED}{secrets.token_hex(4)}")
            self.folder.rename(ended)
            sync_folder(ended.parent)
            remove(ended)

    def release(self) -> None:
        """Let another run have it; harmless the second time."""
        self._lock.release()

    def _take(self) -> None:
        with write_failure(self.folder), Unwind() as unwind:
            if not self._lock.acquire(wait=False):
                raise ArtifactError(
                    f"{self.folder}: another run has this checkpoint (process {self._lock.owner()}); wait "
                    "for it or stop it, or give this run another output folder"
                )
            unwind.push(self.release)
            self._lock.sign()
            self.records.mkdir(exist_ok=True)
            unwind.release()


def records_in(folder: Path) -> tuple[UnitRecord | None, ...]:
    """The records of units in the folder of a checkpoint, None for each that is damaged."""
    with suppress(FileNotFoundError):  # the run that has it may end between two looks of a glob
        return tuple(_read_record(each) for each in sorted((folder / _RECORDS).glob("*.json")))
    return ()


def row_journal_path(folder: Path) -> Path:
    """The journal of single rows in the folder of a checkpoint."""
    return folder / _ROWS


def is_of_recipe(folder: Path, recipe: Mapping[str, str]) -> bool:
    """Whether the units in the folder of a checkpoint were done for that recipe."""
    try:
        return bool(json.loads((folder / _HEAD).read_bytes()) == recipe)
    except (OSError, ValueError):
        return False


def recipe_of(checkpoint: Checkpoint, specs: Mapping[str, OutputSpec]) -> Mapping[str, str]:
    """What the head of a checkpoint says of what its units were done for."""
    described = {name: asdict(spec) for name, spec in sorted(specs.items())}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()
    return {"fingerprint": checkpoint.fingerprint, "outputs": digest}


def _read_record(path: Path) -> UnitRecord | None:
    try:
        return UnitRecord.from_json(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _whole(file: StagedFile) -> bool:
    try:
        with Path(file.path).open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            return opened.tell() == file.bytes and digest == file.sha256
    except OSError:
        return False
