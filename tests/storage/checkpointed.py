"""A small run with a checkpoint, without the manifest: for tests and the processes they start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treadle.storage import (
    BadRow,
    Checkpoint,
    OutputManifest,
    OutputSpec,
    Session,
    Staging,
    UnitRecord,
    WorkUnit,
)

PHASE = "main"


def units_of(count: int, version: object = 0) -> list[WorkUnit]:
    """Units of three rows each; another version is another content."""
    return [WorkUnit(f"{at:05d}-in", at, f"in-{at}", 1, f"in-{at}:{version}") for at in range(count)]


def outputs_of(folder: Path, mode: Any = "error") -> dict[str, OutputSpec]:
    """Two outputs of a format each."""
    return {
        "rows": OutputSpec("jsonl", str(folder / "rows"), mode=mode),
        "table": OutputSpec("parquet", str(folder / "table"), mode=mode),
    }


def session_of(folder: Path, mode: Any = "error", fingerprint: str = "f") -> Session:
    """A session on these outputs with its checkpoint beside them."""
    return Session(
        outputs_of(folder, mode),
        scratch={"spill": OutputSpec("arrow", str(folder / "spill"))},
        quarantine=str(folder / "quarantine.jsonl"),
        checkpoint=Checkpoint(str(folder / ".checkpoint"), fingerprint),
    )


def write_unit(staging: Staging, unit: WorkUnit) -> UnitRecord:
    """What a worker does; the columns of the units widen, so that a commit has to write files anew."""
    with staging.open_unit(unit, PHASE) as writer:
        rows = [{"id": unit.index, "of": unit.identity, "x": None if unit.index == 0 else 0.5}]
        for output in ("rows", "table", "spill"):
            for _ in range(3):
                writer.write(output, rows)
        writer.reject(BadRow(unit.source, 4, "no", b"\xff" if unit.index % 2 else b"{"))
        return writer.finish({"rows_in": 4, "rejected": 1})


def run(
    folder: Path, units: Sequence[WorkUnit], mode: Any = "error"
) -> tuple[int, dict[str, OutputManifest]]:
    """A whole run: how many units it had to do, and what it made."""
    done = 0
    with session_of(folder, mode) as session:
        for unit in units:
            if session.finished(PHASE, unit) is None:
                session.accept(write_unit(session.staging, unit))
                done += 1
        return done, dict(session.commit())
