"""Writing one unit of work, in whatever process: its part files, hidden, and the record of them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from treadle.errors import ArgumentError, UnknownNameError
from treadle.kernel.unwind import Unwind
from treadle.storage.atomic import remove, write_atomically, write_failure
from treadle.storage.dataset import BadRow, OutputSpec, Rows, WorkUnit
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.part import OpenPart, Part, ThreadedPart, staged_file
from treadle.storage.quarantine import QuarantinePart
from treadle.storage.unit_record import QUARANTINE, StagedFile, UnitRecord

STAGED_PREFIX = "part-"
"""How the names of staged files begin."""


@dataclass(frozen=True)
class StagedPlace:
    """The hidden folder of an output, and what is written there."""

    folder: str
    spec: OutputSpec


@dataclass(frozen=True)
class Staging:
    """What writing a unit needs to know; it can be sent to workers.

    `rejects` is the folder for rejected rows, `records` that of the checkpoint; None where there is none.
    """

    places: Mapping[str, StagedPlace]
    rejects: str | None = None
    records: str | None = None

    def open_unit(self, unit: WorkUnit, phase: str = "main", depends: str = "") -> UnitWriter:
        """A writer for one unit. Another one for the same unit, elsewhere, does not get in its way.

        `depends` stands for what its files are made of beside the content of the unit.
        """
        return UnitWriter(self, unit, phase, depends)


def record_path(records: str, phase: str, unit: WorkUnit, depends: str) -> Path:
    """Where a checkpoint keeps the record of a unit."""
    key = hashlib.sha256(f"{phase}\n{depends}\n{unit.identity}".encode("utf-8", "surrogatepass")).hexdigest()
    return Path(records) / f"{key}.json"


class UnitWriter:
    """The files of one unit. As a `with` block it throws them away on the way out, unless it was finished.

    For one thread at a time.
    """

    def __init__(self, staging: Staging, unit: WorkUnit, phase: str, depends: str) -> None:
        self._staging = staging
        self._unit = unit
        self._phase = phase
        self._depends = depends
        self._parts: dict[str, list[OpenPart]] = {}
        self._writes: dict[str, int] = {}
        self._rejects: tuple[Path, QuarantinePart] | None = None

    def write(self, output: str, rows: Rows) -> None:
        """Append rows; with several lanes each call goes to the next one, which has a thread of its own.

        So the rows must not be changed afterwards, and what fails may be raised by a later call.

        Raises UnknownNameError for an output that was not declared; RunError with the path when the rows do
        not fit the rows before them or cannot be written.
        """
        if output not in self._staging.places:
            raise UnknownNameError("output", output, self._staging.places)
        spec = self._staging.places[output].spec
        parts = self._parts.setdefault(output, [])
        lane = self._writes.get(output, 0) % spec.lanes
        self._writes[output] = self._writes.get(output, 0) + 1
        if lane == len(parts):
            parts.append(self._open(output, lane))
        parts[lane].write(rows)

    def reject(self, bad: BadRow) -> None:
        """Put a row into the quarantine. Raises ArgumentError when there is none, RunError with the path."""
        if self._staging.rejects is None:
            raise ArgumentError(f"{bad.source}:{bad.line}: this session was given no quarantine file")
        if self._rejects is None:
            path = Path(self._staging.rejects) / f"{STAGED_PREFIX}{secrets.token_hex(8)}.jsonl"
            with write_failure(path):
                self._rejects = path, QuarantinePart(path)
        path, part = self._rejects
        with write_failure(path):
            part.add(bad)

    def finish(self, counts: Mapping[str, int], *, complete: bool = True) -> UnitRecord:
        """Finish the files; the record of the unit, which a checkpoint keeps from now on.

        Not `complete`: the unit was left in the middle, so nothing of it is kept but its rejected rows.
        """
        if not complete:
            self._abandon_parts()
        for parts in self._parts.values():
            for part in parts:
                part.end()
        files = tuple(part.finish() for parts in self._parts.values() for part in parts)
        rejected = self._finished_rejects()
        record = UnitRecord(self._phase, self._depends, self._unit, files, rejected, dict(counts))
        if complete and self._staging.records is not None and self._unit.identity:
            path = record_path(self._staging.records, self._phase, self._unit, self._depends)
            with write_failure(path):
                write_atomically(path, record.to_json())
        self._parts, self._rejects = {}, None
        return record

    def abandon(self) -> None:
        """Throw the files away; nothing after `finish`."""
        with Unwind() as unwind:
            unwind.push(self._abandon_parts)
            if self._rejects is not None:
                path, part = self._rejects
                self._rejects = None
                unwind.push(remove, path)
                part.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unwind = Unwind()
        unwind.push(self.abandon)
        unwind.__exit__(kind, error, trace)

    def _open(self, output: str, lane: int) -> OpenPart:
        place = self._staging.places[output]
        suffix, _ = write_backend_for(place.spec.backend).codec(place.spec.compression)
        name = f"{STAGED_PREFIX}{self._unit.index:05d}-{secrets.token_hex(8)}{suffix}"
        part = Part(Path(place.folder) / name, output, lane, place.spec)
        return part if place.spec.lanes == 1 else ThreadedPart(part, f"lane {lane} of {output}")

    def _finished_rejects(self) -> StagedFile | None:
        if self._rejects is None:
            return None
        path, part = self._rejects
        with write_failure(path):
            part.close()
        return staged_file(QUARANTINE, path, 0, part.rows, pa.schema([]))

    def _abandon_parts(self) -> None:
        with Unwind() as unwind:
            for parts in self._parts.values():
                for part in parts:
                    unwind.push(part.abandon)
            self._parts = {}
