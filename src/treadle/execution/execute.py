"""One step, in written order.

1. refuse a place given by hand that holds what no step has made
2. take the lease: one step has one owner, among threads and processes
3. look again: who had it before may have done it
4. clear what a former attempt left, its record first
5. run `fn(output_path)` in the empty folder
6. list and hash the files
7. write the record, last: only now the step is done
8. release the lease
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from treadle.artifacts import (
    RECORD_NAME,
    Artifact,
    FileEntry,
    Json,
    Record,
    code_hash,
    encode_value,
    read_record,
    write_record,
)
from treadle.errors import ArtifactError, StepError
from treadle.execution.freshness import built_from, standing_record
from treadle.execution.lease import lease, lock_path
from treadle.execution.step_spec import StepSpec
from treadle.kernel import Cached, Done, Failed, add_note


@dataclass(frozen=True)
class Attempt:
    """What came of a step; `record` is there unless it failed."""

    outcome: Done | Cached | Failed
    record: Record | None
    started: datetime
    seconds: float


def attempt(step: StepSpec, builds: Mapping[str, str], *, forced: bool = False) -> Attempt:
    """Carry the step out; what it raises becomes its outcome.

    `builds` are those of the dependencies (step id -> build). With `forced` it runs in any case.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    outcome: Done | Cached | Failed
    record: Record | None = None
    try:
        outcome, record = execute(step, builds, forced=forced)
    except BaseException as error:  # noqa: BLE001 - the outcome, raised at the end of the run
        add_note(error, f"in step {step.id}, output folder {step.output_path}")
        outcome = Failed(error)
    return Attempt(outcome, record, started, time.perf_counter() - clock)


def execute(
    step: StepSpec, builds: Mapping[str, str], *, forced: bool = False
) -> tuple[Done | Cached, Record]:
    """Carry the step out as the module says, and give its outcome and its record.

    Raises:
        ArtifactError: what it returned cannot be kept.
        StepError: the step has no folder, or must not have the one that it was given.
        Exception: whatever the step raises; the folder stays, without a record.
    """
    artifact = Artifact(step.output_path)
    _check_clearable(step)
    with lease(step.output_path):
        present = None if forced else standing_record(step)
        if present is not None and built_from(present, builds):
            return Cached(artifact), present
        _clear(Path(step.output_path))
        record = _run(step, builds)
        write_record(step.output_path, record)
        return Done(artifact), record


def _check_clearable(step: StepSpec) -> None:
    """A place given by hand may hold what no step has made, and what nobody could make again."""
    folder = Path(step.output_path)
    if step.override_output_path is None or Path(lock_path(step.output_path)).exists():
        return
    holds_something = folder.is_file() or (folder.is_dir() and any(folder.iterdir()))
    if holds_something and read_record(step.output_path) is None:
        raise StepError(
            f"step {step.id}: override_output_path: expected a new or empty folder, got {folder}, which "
            "holds what no step has made; move that away, or give the step another place"
        )


def _clear(folder: Path) -> None:
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    with contextlib.suppress(FileNotFoundError):
        (folder / RECORD_NAME).unlink()
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _run(step: StepSpec, builds: Mapping[str, str]) -> Record:
    started, clock = datetime.now(UTC), time.perf_counter()
    value = _kept(step, step.fn(step.output_path))
    if not Path(step.output_path).is_dir():
        raise StepError(
            f"step {step.id}: its output folder is gone after it ran: {step.output_path}; "
            "a step may fill its folder, and must not remove or replace it"
        )
    return Record(
        build=uuid.uuid4().hex,
        step_id=step.id,
        name=step.name,
        fingerprint=step.hash_id,
        code_hash=code_hash(step.fn),
        deps=dict(builds),
        config=step.config,
        files=_list_files(Path(step.output_path)),
        value=value,
        started=started.isoformat(),
        seconds=time.perf_counter() - clock,
        attempts=1,
        host=socket.gethostname(),
        treadle=metadata.version("treadle"),
    )


def _kept(step: StepSpec, value: object) -> Json:
    try:
        return encode_value(value)
    except ArtifactError as error:
        raise ArtifactError(f"step {step.id} returned what cannot be kept: {error}") from error


def _list_files(folder: Path) -> tuple[FileEntry, ...]:
    own = folder / RECORD_NAME  # whoever copies the folder of another step copies its record too
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != own)
    return tuple(_entry(folder, path) for path in files)


def _entry(folder: Path, path: Path) -> FileEntry:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileEntry(path.relative_to(folder).as_posix(), path.stat().st_size, digest)
