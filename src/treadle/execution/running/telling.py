"""What is kept of an attempt: the record of the build that it made, and the note of how it ended."""

from __future__ import annotations

import secrets
import socket
import time

from treadle.artifacts import (
    Artifact,
    FileEntry,
    Json,
    RecordBody,
    RecordHead,
    code_hash,
    encode_value,
    type_name,
)
from treadle.artifacts.provenance import capture
from treadle.errors import ArtifactError, DependencyRebuiltError, LeaseLostError
from treadle.execution.blame import describe
from treadle.execution.running.task import Task
from treadle.execution.step_spec import StepSpec
from treadle.fray import stop_requested
from treadle.storage.ledger import AttemptNote, AttemptOutcome, Claim


def code_of(step: StepSpec) -> str:
    """The hash of its function; empty when it has none."""
    return code_hash(step.fn) if step.fn else ""


def head_of(
    task: Task, files: tuple[FileEntry, ...], location: str, started: str, seconds: float
) -> RecordHead:
    """The head of the record of a build, made of the builds that the task names."""
    step = task.step
    return RecordHead(
        build=secrets.token_hex(16),
        step_id=step.id,
        name=step.name,
        fingerprint=step.hash_id,
        code_hash=code_of(step) if task.code is None else task.code,
        deps=dict(task.builds),
        files=files,
        location=step.source or location,
        started=started,
        seconds=seconds,
    )


def body_of(task: Task, value: object, work: str) -> RecordBody:
    """The body of the record of a build that returned `value` and filled the folder `work`.

    Raises:
        ArtifactError: the value is of a type that is not kept.
    """
    origin = capture(task.run) if task.origin is None else task.origin
    return RecordBody(
        value=_kept(task.step, value, work),
        config_text=task.step.config_text,
        artifact_type=type_name(type(value)) if isinstance(value, Artifact) else "",
        attempts=task.attempt,
        run=task.run,
        host=socket.gethostname(),
        treadle=origin.treadle,
        commit=origin.commit,
        dirty=origin.dirty,
        lock=origin.lock,
    )


def _kept(step: StepSpec, value: object, work: str) -> Json:
    try:
        return encode_value(value, work, str(step.output_path_prefix))
    except ArtifactError as error:
        raise ArtifactError(f"step {step.id} returned what cannot be kept: {error}") from error


def note_of(task: Task, claim: Claim, started: str, clock: float, error: BaseException | None) -> AttemptNote:
    """The note of an attempt that began at `started`, by `time.perf_counter` at `clock`, and ends now."""
    return AttemptNote(
        run=task.run,
        step_id=task.step.id,
        name=task.step.name,
        place=claim.place,
        attempt=task.attempt,
        outcome=outcome_of(error),
        reason="" if error is None else describe(error),
        started=started,
        seconds=time.perf_counter() - clock,
    )


def outcome_of(error: BaseException | None) -> AttemptOutcome:
    """How the attempt of the job that runs here ended that raised this error."""
    if error is None:
        return "done"
    if isinstance(error, LeaseLostError | DependencyRebuiltError):
        return "lost"
    return "cancelled" if stop_requested() else "failed"
