"""The postgres format: tables of a PostgreSQL server, read and written by binary COPY.

A table is read as one unit, so that all its rows are of one moment. What is written waits in parquet files
until the run commits; then one transaction makes the table and fills it, so nobody ever sees a part of it,
and notes that it did, for a run that has to go on after being killed just then.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from treadle.db import Database, shown_url
from treadle.errors import ArgumentError, ArtifactError
from treadle.storage.dataset import Dataset, OutputSpec, RowBatch, WorkUnit
from treadle.storage.formats.format import Format, Load, ReadBackend, WriteBackend
from treadle.storage.formats.options import parse_options
from treadle.storage.formats.parquet import ParquetPart
from treadle.storage.formats.postgres_loads import Loads
from treadle.storage.formats.postgres_options import PostgresOptions
from treadle.storage.formats.postgres_sql import (
    arrow_schema,
    copy_in,
    create_table,
    empty,
    identifier,
    selection,
    server_type,
    source_of,
    unwritable,
)

_NAME = "postgres"
_LOAD_ROWS = 10_000


def list_units(dataset: Dataset) -> tuple[WorkUnit, ...]:
    """The whole table or query as one unit; its columns are checked.

    A table has no version, so the identity is new each time: nothing of an earlier run is taken for the same.

    Raises:
        ArgumentError: the options or the URL are wrong, or a column comes twice.
        UnknownNameError: a column that is not there.
        DatabaseError: the server cannot be reached, or refuses.
    """
    options = parse_options(_NAME, PostgresOptions, dataset.options)
    query = source_of(options)
    with Database(dataset.path) as database:
        selection(query, database.describe(empty(query)), dataset)
    name = options.table or "query"
    return (WorkUnit(f"00000-{name}", 0, f"{shown_url(dataset.path)} {name}", 0, secrets.token_hex(16)),)


def read(dataset: Dataset, unit: WorkUnit, batch_rows: int) -> Iterator[RowBatch]:
    """The rows, `batch_rows` at a time, in the order in which the server gives them.

    Types that Arrow has no like for (numeric, json, uuid ...) come as text. Raises as `list_units`.
    """
    query = source_of(parse_options(_NAME, PostgresOptions, dataset.options))
    with Database(dataset.path) as database:
        query = selection(query, database.describe(empty(query)), dataset)
        columns = database.describe(empty(query))
        schema = arrow_schema(columns)
        rows = database.copy_out(f"COPY ({query}) TO STDOUT (FORMAT binary)", columns)
        done = 0
        while some := list(islice(rows, batch_rows)):
            lines = range(done + 1, done + len(some) + 1)
            yield RowBatch(lines, unit.source, table=_batch(some, schema))
            done += len(some)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    values = zip(*rows, strict=True) if len(schema) else ()
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def check(spec: OutputSpec, token: str | None = None) -> None:
    """See, before any work, that the table can be written, or that a run of that token has filled it.

    Raises:
        ArgumentError: the options or the URL are wrong.
        ArtifactError: the table is there, and the mode is `error`.
        DatabaseError: the server cannot be reached, or refuses.
    """
    table = _table(spec)
    with Database(spec.path) as database:
        if token is not None:
            loads = Loads(database, spec, table)
            loads.make()
            if loads.has(token):
                return
        _refuse_existing(database, spec, table)


def load(spec: OutputSpec, files: Sequence[Path], load: Load | None = None) -> None:
    """Bring the rows of parquet files of one schema into the table, all of them or none, in one transaction.

    With mode `overwrite` a table that is there is replaced, with `append` it gets the rows. A `load` that has
    been done before is not done again. Raises as `check`, ArtifactError also when it was with other rows.
    """
    table = _table(spec)
    if not files:
        raise ArtifactError(f"{shown_url(spec.path)}: {table}: no row was written, so no column is known")
    schema = pq.read_schema(files[0])
    with Database(spec.path) as database, database.transaction():
        if load is not None:
            loads = Loads(database, spec, table)
            if loads.stands(load):
                return
            loads.note(load)
        _refuse_existing(database, spec, table)
        if spec.mode == "overwrite":
            database.execute(f"DROP TABLE IF EXISTS {identifier(table)}")
        if not _exists(database, table):
            database.execute(create_table(table, schema))
        kinds = [str(server_type(each.type)) for each in schema]
        database.copy_in(copy_in(table, schema.names), kinds, chain.from_iterable(map(_rows, files)))


def forget(spec: OutputSpec, token: str) -> None:
    """Remove what is noted of the load of a run that is over. Raises DatabaseError."""
    with Database(spec.path) as database:
        Loads(database, spec, _table(spec)).forget(token)


def _rows(file: Path) -> Iterator[tuple[Any, ...]]:
    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(_LOAD_ROWS):
            yield from zip(*(_values(column) for column in batch.columns), strict=True)


def _values(column: pa.Array[Any]) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz))  # refuses what would lose nanoseconds
    return column.to_pylist()


def _table(spec: OutputSpec) -> str:
    options = parse_options(_NAME, PostgresOptions, spec.options)
    if options.table is None:
        raise ArgumentError("an output of the format postgres needs the option table")
    return options.table


def _refuse_existing(database: Database, spec: OutputSpec, table: str) -> None:
    if spec.mode == "error" and _exists(database, table):
        raise ArtifactError(
            f"{shown_url(spec.path)}: the table {table} is already there and is never overwritten; "
            "remove it, choose another one, or set mode: overwrite or append"
        )


def _exists(database: Database, table: str) -> bool:
    return database.execute("SELECT to_regclass(%s) IS NOT NULL", (identifier(table),)) == [(True,)]


POSTGRES = Format(
    name=_NAME,
    reader=ReadBackend(suffixes=(), read=read, list_units=list_units),
    writer=WriteBackend(
        codecs={None: (".parquet", "zstd")},
        unwritable=unwritable,
        open=lambda path, codec, _: ParquetPart(path, codec),
        parts="parquet",
        load=load,
        check=check,
        forget=forget,
    ),
)
