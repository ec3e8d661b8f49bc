"""The files of an output as a commit shows them: of one schema, under their final names, in a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from treadle.errors import RunError
from treadle.storage.atomic import is_remote, local_path
from treadle.storage.dataset import OutputSpec
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.output_manifest import OutputFile, OutputManifest
from treadle.storage.shown import shown_url
from treadle.storage.target import PartFile
from treadle.storage.union import Source, rewritten, unite
from treadle.storage.unit_record import StagedFile, UnitRecord


class Piece(NamedTuple):
    """A staged file and the unit that it is of."""

    record: UnitRecord
    file: StagedFile


@dataclass(frozen=True)
class United:
    """What an output will consist of, in the order of units, and the manifest of it."""

    parts: tuple[PartFile, ...]
    manifest: OutputManifest


def united(name: str, spec: OutputSpec, records: Iterable[UnitRecord]) -> United:
    """The output `name`; files that lack columns or have narrower types are written anew.

    Raises RunError for two units of one index, and for types that do not go together.
    """
    pieces = [Piece(record, file) for record in records for file in record.files if file.output == name]
    _check_places(name, pieces)
    sources = [Source(file, record.unit.source or record.unit.id) for record, file in pieces]
    union = unite(sources, spec)
    parts = tuple(
        _part(record, rewritten(source, union, spec), spec)
        for (record, _), source in zip(pieces, sources, strict=True)
    )
    return United(parts, _manifest(name, spec, parts, union.schema))


def _part(record: UnitRecord, file: StagedFile, spec: OutputSpec) -> PartFile:
    suffix, _ = write_backend_for(spec.backend).codec(spec.compression)
    lane = f"-{file.lane}" if spec.lanes > 1 else ""
    name = f"part-{record.unit.index:05d}{lane}{suffix}"
    return PartFile(file.path, name, file.rows, file.bytes, file.sha256)


def _manifest(name: str, spec: OutputSpec, parts: Sequence[PartFile], schema: pa.Schema) -> OutputManifest:
    remote = is_remote(spec.path) or write_backend_for(spec.backend).load is not None
    return OutputManifest(
        output=name,
        path=shown_url(spec.path) if remote else str(local_path(spec.path)),
        backend=spec.backend,
        rows=sum(each.rows for each in parts),
        files=tuple(OutputFile(each.name, each.rows, each.bytes, each.sha256) for each in parts),
        columns={each.name: str(each.type) for each in schema},
    )


def _check_places(output: str, pieces: Sequence[Piece]) -> None:
    seen: dict[tuple[int, int], UnitRecord] = {}
    for record, file in pieces:
        other = seen.setdefault((record.unit.index, file.lane), record)
        if other is not record:
            raise RunError(
                f"output {output!r}: units {other.unit.id} ({other.phase}) and {record.unit.id} "
                f"({record.phase}) have one index; give each an index of its own"
            )
