"""The SQL of the postgres format, and which types of the server stand for which types of Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from treadle.db import Column
from treadle.errors import ArgumentError, UnknownNameError
from treadle.storage.dataset import Dataset
from treadle.storage.formats.postgres_options import PostgresOptions

_TEXT: pa.DataType = pa.string()
_SCALARS: dict[str, tuple[int, int, pa.DataType]] = {
    # name: number (OID) of the type, of its array, type of Arrow; see pg_type.dat of PostgreSQL
    "bool": (16, 1000, pa.bool_()),
    "bytea": (17, 1001, pa.binary()),
    "int8": (20, 1016, pa.int64()),
    "int2": (21, 1005, pa.int16()),
    "int4": (23, 1007, pa.int32()),
    "text": (25, 1009, _TEXT),
    "float4": (700, 1021, pa.float32()),
    "float8": (701, 1022, pa.float64()),
    "varchar": (1043, 1015, _TEXT),
    "date": (1082, 1182, pa.date32()),
    "timestamp": (1114, 1115, pa.timestamp("us")),
    "timestamptz": (1184, 1185, pa.timestamp("us", "UTC")),
}
_ARROW: dict[int, pa.DataType] = {
    **{oid: kind for oid, _, kind in _SCALARS.values()},
    **{array: pa.list_(kind) for _, array, kind in _SCALARS.values()},
}
_SERVER: dict[pa.DataType, str] = {
    **{kind: name for name, (_, _, kind) in reversed(_SCALARS.items())},
    pa.int8(): "int2",
    pa.uint8(): "int2",
    pa.uint16(): "int4",
    pa.uint32(): "int8",
    pa.large_string(): "text",
    pa.large_binary(): "bytea",
    pa.null(): "text",
}
_DECLARED = {"bool": "boolean", "int64": "bigint", "float64": "double precision", "string": "text"}


def identifier(name: str) -> str:
    """A table, with its schema before a dot, or a column, so quoted that it can only be a name."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def source_of(options: PostgresOptions) -> str:
    """The query whose rows are read."""
    if options.table is not None:
        return f"SELECT * FROM {identifier(options.table)}"  # noqa: S608 - an identifier, quoted
    return str(options.query).rstrip().rstrip(";")


def empty(query: str) -> str:
    """The query, giving no row."""
    return f"SELECT * FROM ({query}) AS source LIMIT 0"  # noqa: S608 - a query of the manifest


def selection(query: str, found: Sequence[Column], dataset: Dataset) -> str:
    """The query for the columns of `dataset`, each as a type that is read: others come as text.

    Raises:
        UnknownNameError: a column that the query does not give.
        ArgumentError: a column that it gives twice.
    """
    kinds = {each.name: each.oid for each in found}
    twice = [name for name, count in Counter(each.name for each in found).items() if count > 1]
    if twice:
        raise ArgumentError(f"the query gives the column {twice[0]!r} more than once: name one of them anew")
    for name in (*(dataset.columns or ()), *dataset.types):
        if name not in kinds:
            raise UnknownNameError("column", name, kinds)
    wanted = kinds if dataset.columns is None else dataset.columns
    chosen = ", ".join(_expression(name, kinds[name], dataset.types) for name in wanted)
    return f"SELECT {chosen} FROM ({query}) AS source"  # noqa: S608 - identifiers, quoted


def _expression(name: str, oid: int, types: Mapping[str, str]) -> str:
    quoted = _column(name)
    if name in types:
        return f"{quoted}::{_DECLARED[types[name]]} AS {quoted}"
    return quoted if oid in _ARROW else f"{quoted}::text AS {quoted}"


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """The types of Arrow for the columns of a `selection`."""
    return pa.schema([(each.name, _ARROW[each.oid]) for each in columns])


def create_table(table: str, schema: pa.Schema) -> str:
    """The statement that makes a table for rows of `schema`."""
    columns = ", ".join(f"{_column(each.name)} {server_type(each.type)}" for each in schema)
    return f"CREATE TABLE {identifier(table)} ({columns})"


def copy_in(table: str, names: Iterable[str]) -> str:
    """The statement that takes rows of these columns."""
    return f"COPY {identifier(table)} ({', '.join(map(_column, names))}) FROM STDIN (FORMAT binary)"


def server_type(kind: pa.DataType) -> str | None:
    """The type of the server for a type of Arrow; None when it has none. What is nested deeper is jsonb."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = server_type(kind.value_type)
        return "jsonb" if inner == "jsonb" or (inner or "").endswith("[]") else inner and f"{inner}[]"
    if pa.types.is_struct(kind):
        return "jsonb" if all(server_type(each.type) for each in kind) else None
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    return "numeric" if pa.types.is_decimal(kind) else _SERVER.get(kind)


def unwritable(schema: pa.Schema) -> str | None:
    """Why no table can hold rows of `schema`, naming the column; None when one can."""
    found = (each for each in schema if server_type(each.type) is None)
    return next((f"column {each.name}: {each.type} has no type in PostgreSQL" for each in found), None)


def _column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
