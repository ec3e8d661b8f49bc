"""What is kept of a unit of work that is done: its files, still hidden, with their sums, and its counts."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import pyarrow as pa

from treadle.storage.dataset import WorkUnit

QUARANTINE = "quarantine"
"""What the file of rejected rows has in place of the name of an output."""


@dataclass(frozen=True)
class StagedFile:
    """A finished part file of one output, not visible yet. `lane` counts the files of the unit, from 0."""

    output: str
    path: str
    lane: int
    rows: int
    bytes: int
    sha256: str
    schema: pa.Schema


@dataclass(frozen=True)
class UnitRecord:
    """One finished unit of one phase of a run. It can be pickled, and comes whole out of its JSON.

    `depends` stands for what its files were made of beside the content of the unit, "" for nothing else.
    """

    phase: str
    depends: str
    unit: WorkUnit
    files: tuple[StagedFile, ...]
    rejected: StagedFile | None
    counts: Mapping[str, int]

    @property
    def all_files(self) -> tuple[StagedFile, ...]:
        """The files of the outputs and that of the rejected rows."""
        return self.files if self.rejected is None else (*self.files, self.rejected)

    def of(self, unit: WorkUnit) -> Self:
        """The same for a unit of the same content, which may have another place among the units."""
        return replace(self, unit=unit)

    def to_json(self) -> bytes:
        """The record as JSON."""
        document = {
            "phase": self.phase,
            "depends": self.depends,
            "unit": asdict(self.unit),
            "files": [_file_document(each) for each in self.files],
            "rejected": None if self.rejected is None else _file_document(self.rejected),
            "counts": dict(self.counts),
        }
        return json.dumps(document).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """The record that `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        document = json.loads(content)
        part = document["unit"].pop("part")
        rejected = document["rejected"]
        return cls(
            document["phase"],
            document["depends"],
            WorkUnit(**document["unit"], part=None if part is None else tuple(part)),
            tuple(_file_from(each) for each in document["files"]),
            None if rejected is None else _file_from(rejected),
            document["counts"],
        )


def _file_document(file: StagedFile) -> dict[str, Any]:
    schema = base64.b64encode(file.schema.serialize().to_pybytes()).decode()
    return {**{name: value for name, value in vars(file).items() if name != "schema"}, "schema": schema}


def _file_from(document: dict[str, Any]) -> StagedFile:
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(document.pop("schema"))))
    return StagedFile(**document, schema=schema)
