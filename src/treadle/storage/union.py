"""One schema for all files of an output, and the files that have to be written anew to have it.

Nothing becomes something, whole numbers become fractions where that is exact. Any other change of type
between two files is refused, or turns the column into text, as the output says; no value is silently made
null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from treadle.errors import RunError
from treadle.storage.atomic import remove, write_failure
from treadle.storage.dataset import Dataset, OutputSpec, WorkUnit
from treadle.storage.formats.backends import read_backend_for, write_backend_for
from treadle.storage.formats.format import WriteBackend
from treadle.storage.part import staged_file
from treadle.storage.schema import as_text, conform, widen
from treadle.storage.unit_record import StagedFile


class Source(NamedTuple):
    """A staged file, and what its rows were made from: for messages."""

    file: StagedFile
    origin: str


class Union(NamedTuple):
    """The schema of all files; `texts` are the columns that become text."""

    schema: pa.Schema
    texts: frozenset[str]


def unite(sources: Sequence[Source], spec: OutputSpec) -> Union:
    """The schema of all files together, columns in the order of files. One without rows refuses no type.

    Raises:
        RunError: a column has two types that do not go together, and the output does not take text for it.
    """
    known: dict[str, pa.Field[Any]] = {}
    typed: dict[str, Source] = {}
    texts: set[str] = set()
    for source in sorted(sources, key=lambda each: not each.file.rows):
        for field in source.file.schema:
            first = known.setdefault(field.name, field.remove_metadata())
            if first.type != field.type and field.name not in texts:
                kind = _joined(first, field, empty=not source.file.rows)
                if kind is None and spec.on_type_change == "refuse":
                    raise _conflict(field, source, first, typed[field.name])
                if kind is None:
                    texts.add(field.name)
                known[field.name] = pa.field(field.name, kind or pa.string())
            if not pa.types.is_null(field.type):
                typed.setdefault(field.name, source)
    names = dict.fromkeys(name for source in sources for name in source.file.schema.names)
    return Union(pa.schema([known[name] for name in names]), frozenset(texts))


def rewritten(source: Source, union: Union, spec: OutputSpec) -> StagedFile:
    """The file itself when it has the schema already; else a new one beside it, which takes its place.

    Raises:
        RunError: a value has no exact form under the schema, or the file cannot be written.
    """
    file = source.file
    backend = write_backend_for(spec.backend)
    if not _differs(file.schema, union.schema, backend):
        return file
    schema = union.schema if backend.keeps_types else _as_texts(union.schema)
    old = Path(file.path)
    new = old.with_name(f"{old.name.partition('.')[0]}-united.{old.name.partition('.')[2]}")
    remove(new)  # a commit that was cut in the middle may have left it
    with write_failure(new):
        part = backend.open_part(new, spec)
        try:
            if not file.rows:
                part.write(schema.empty_table())
            for rows in _read(file, backend.parts or spec.backend):
                part.write(_conformed(rows, union, schema, source))
            part.close()
        except BaseException:
            part.abandon()
            raise
    return staged_file(file.output, new, file.lane, file.rows, union.schema)


def _read(file: StagedFile, backend: str) -> Iterator[pa.Table]:
    unit = WorkUnit(file.path, 0, file.path, file.bytes)
    for batch in read_backend_for(backend).read(Dataset(backend, file.path), unit, 65_536):
        if batch.bad:
            raise ValueError(f"{batch.bad[0].source}:{batch.bad[0].line}: {batch.bad[0].reason}")
        yield pa.table(batch.rows)


def _joined(one: pa.Field[Any], other: pa.Field[Any], *, empty: bool) -> pa.DataType | None:
    """The type of both; None when there is none. An `empty` other, which has no value, goes with all."""
    try:
        wide = widen(pa.schema([one]), pa.schema([other]))
    except (pa.ArrowException, ValueError):
        return one.type if empty else None
    kind: pa.DataType = wide.field(0).type
    return kind


def _conformed(rows: pa.Table, union: Union, schema: pa.Schema, source: Source) -> pa.Table:
    if not rows.num_rows:
        return schema.empty_table()
    try:
        return conform(as_text(rows, union.texts), schema)
    except pa.ArrowInvalid as error:
        raise RunError(
            f"output {source.file.output!r}: column {_inexact(rows, schema)!r} has whole numbers in the rows "
            f"of {source.origin} and fractions in others, and one has no exact form as a fraction: {error}; "
            "declare the column in inputs.NAME.types, as float64 or as string"
        ) from error


def _inexact(rows: pa.Table, schema: pa.Schema) -> str:
    """The column that cannot be brought under the schema."""
    for name in rows.schema.names:
        try:
            conform(rows.select([name]), pa.schema([schema.field(name)]))
        except pa.ArrowInvalid:
            return name
    return ", ".join(rows.schema.names)


def _as_texts(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in schema.names])


def _differs(schema: pa.Schema, united: pa.Schema, backend: WriteBackend) -> bool:
    """Whether a file looks another way than it would under the schema of all."""
    return backend.differs(schema, united) if backend.keeps_types else schema.names != united.names


def _conflict(field: pa.Field[Any], source: Source, known: pa.Field[Any], first: Source) -> RunError:
    return RunError(
        f"output {source.file.output!r}: column {field.name!r} is {field.type} in the rows of "
        f"{source.origin}, but {known.type} in those of {first.origin}; make them one type before, declare "
        "it in inputs.NAME.types, or set outputs.NAME.on_type_change: text"
    )
