"""What formats with typed columns share: the columns that a dataset wants, and the rows that fit them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from treadle.errors import ArtifactError
from treadle.storage.columns import Columns
from treadle.storage.dataset import RAW_BYTES, BadRow, Dataset, RowBatch, Rows
from treadle.storage.formats.format import Part

_DECLARED: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
}


class View:
    """The columns of one file as a dataset wants them.

    `read` are the names to read. Raises ArtifactError when one of them appears twice.
    """

    def __init__(self, schema: pa.Schema, dataset: Dataset, source: str) -> None:
        wanted = list(dict.fromkeys(schema.names if dataset.columns is None else dataset.columns))
        for name in wanted:
            if (count := schema.names.count(name)) > 1:
                known = ", ".join(schema.names)
                raise ArtifactError(f"{source}: column {name!r} appears {count} times; the file has: {known}")
        self._source = source
        self._missing = [name for name in wanted if name not in schema.names]
        self._reject = bool(self._missing) and dataset.missing == "reject"
        self._wanted = wanted
        self._types = {name: _DECLARED[kind] for name, kind in dataset.types.items() if name in wanted}
        self.read = [name for name in wanted if name in schema.names]
        self._schema = pa.schema([schema.field(name) for name in self.read])

    def empty(self) -> RowBatch:
        """No rows, with the columns."""
        return self.judged(pa.RecordBatch.from_pylist([], schema=self._schema), 0)

    def judged(self, rows: pa.RecordBatch, before: int) -> RowBatch:
        """The rows that can be used, and those that cannot; `before` rows of the file came earlier."""
        lines = range(before + 1, before + rows.num_rows + 1)
        if self._reject:
            return self._without(rows, lines)
        given, flaws = rows, _invalid(rows)
        for name, kind in self._types.items():
            if name in self.read:
                rows = _cast(rows, name, kind, flaws)
        if not flaws:
            return RowBatch(lines, self._source, table=self._whole(rows))
        bad = tuple(
            BadRow(self._source, lines[at], flaws[at], _raw(given.slice(at, 1)), None, "wrong-type")
            for at in sorted(flaws)
        )
        kept = [index for index in range(rows.num_rows) if index not in flaws]
        rows = rows.take(pa.array(kept, pa.int64()))
        return RowBatch([lines[at] for at in kept], self._source, bad, table=self._whole(rows))

    def _without(self, rows: pa.RecordBatch, lines: Sequence[int]) -> RowBatch:
        reason = f"column {', '.join(sorted(self._missing))}: missing"
        bad = tuple(
            BadRow(self._source, line, reason, _raw(rows.slice(at, 1)), None, "missing-column")
            for at, line in enumerate(lines)
        )
        return RowBatch((), self._source, bad, table=rows.slice(0, 0))

    def _whole(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with nulls for the columns that the file has not."""
        if not self._missing:
            return rows
        columns = {name: rows.column(name) for name in self.read}
        for name in self._missing:
            columns[name] = pa.array([None] * rows.num_rows, self._types.get(name, pa.null()))
        return pa.RecordBatch.from_arrays([columns[name] for name in self._wanted], names=self._wanted)


def damaged(source: str, reason: str) -> RowBatch:
    """A file that could not be read to its end."""
    nothing = pa.RecordBatch.from_pylist([], schema=pa.schema([]))
    return RowBatch((), source, (BadRow(source, 0, reason, b"", None, "damaged-file"),), table=nothing)


def parts_of(sizes: Sequence[int], limit: float) -> Iterator[Part]:
    """Ranges of things of these sizes, each of at most `limit` in all, or of one thing."""
    first, size = 0, 0
    for at, each in enumerate(sizes):
        if at > first and size + each > limit:
            yield Part(first, at, size)
            first, size = at, 0
        size += each
    if sizes:
        yield Part(first, len(sizes), size)


def in_file(sizes: Sequence[int], total: int) -> list[int]:
    """Sizes as they are in memory, brought to the scale of the file of `total` bytes."""
    whole = max(1, sum(sizes))
    return [each * total // whole for each in sizes]


def as_table(rows: Rows) -> pa.Table:
    """The rows as a table; records become one by the columns that they have.

    Raises ValueError when two records have values of two types in one column.
    """
    if isinstance(rows, pa.Table):
        return rows
    if not isinstance(rows, pa.RecordBatch):
        rows, misfits = Columns().fit(rows)
        if misfits:
            raise ValueError(f"row {misfits[0].index}: {misfits[0].reason}")
    return pa.table(rows)


def _invalid(rows: pa.RecordBatch) -> dict[int, str]:
    """Why a row, by index, holds a value that its type does not allow."""
    try:
        rows.validate(full=True)
    except pa.ArrowException:
        flaws = {index: flaw for index in range(rows.num_rows) if (flaw := _flaw(rows.slice(index, 1)))}
        if not flaws:
            raise
        return flaws
    return {}


def _flaw(row: pa.RecordBatch) -> str | None:
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            return f"column {name}: {error}"
    return None


def _cast(rows: pa.RecordBatch, name: str, kind: pa.DataType, flaws: dict[int, str]) -> pa.RecordBatch:
    """The column as the declared type; a value without an exact form there is null, its row flawed."""
    column = rows.column(name)
    if column.type == kind:
        return rows
    try:
        fitting = _exact(column, kind)
    except pa.ArrowException:
        values: list[Any] = []
        for index in range(len(column)):
            value = _exact_value(column.slice(index, 1), kind)
            if value is None and column[index].is_valid and index not in flaws:
                flaws[index] = (
                    f"column {name}: expected {kind}, found {column.type} {_excerpt(column[index])}"
                )
            values.append(value)
        fitting = pa.array(values, kind)
    return rows.set_column(rows.schema.get_field_index(name), name, fitting)


def _exact_value(one: pa.Array[Any], kind: pa.DataType) -> Any:
    try:
        return _exact(one, kind)[0].as_py()
    except pa.ArrowException:
        return None


def _exact(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The column as that type.

    Raises pa.ArrowException when a value has no exact form; a number in text is none.
    """
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if column.null_count == len(column):
        return pa.array([None] * len(column), kind)
    same = _is_text if kind == pa.string() else _is_number
    if column.type != kind and (kind == pa.bool_() or not same(column.type)):
        raise pa.ArrowInvalid("no exact form")
    return column.cast(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _excerpt(value: pa.Scalar[Any]) -> str:
    text = repr(value.as_py())
    return text if len(text) <= 60 else text[:57] + "..."


def _raw(row: pa.RecordBatch) -> bytes:
    """A row, alone in its batch, as JSON; nothing for one with text that is not UTF-8."""
    try:
        text = json.dumps(row.to_pylist()[0], ensure_ascii=False, default=str)
    except UnicodeDecodeError:
        return b""
    return text.encode("utf-8", "backslashreplace")[:RAW_BYTES]
