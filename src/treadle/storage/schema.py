"""How the schemas of batches that belong together widen into one.

New columns may come, a column of nulls may get a type, integers may become fractions; any other change is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pyarrow as pa


def widen(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """The narrowest schema that holds both, without metadata; `known` itself when it does.

    Raises pa.ArrowException naming the column that has two types, ValueError for two columns of one name.
    """
    if known.equals(found):
        return known
    _check_names(found)
    return pa.unify_schemas([known, found.remove_metadata()], promote_options="permissive")


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows under a schema that is at least as wide; columns in its order, null where `rows` lack one.

    Raises pa.ArrowInvalid when an integer has no exact form as a fraction.
    """
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    if not rows.num_columns:
        # Concatenated, rows without a column would be lost.
        return pa.Table.from_arrays(
            [pa.array([None] * rows.num_rows, each.type) for each in schema], schema=schema
        )
    return pa.concat_tables(
        [schema.empty_table(), rows.replace_schema_metadata(None)], promote_options="permissive"
    )


def _check_names(schema: pa.Schema) -> None:
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"column {twice!r} appears more than once")


def as_text(rows: pa.Table, columns: Collection[str]) -> pa.Table:
    """The rows with these columns as text, values spelt as JSON spells them; text stays, null stays null.

    What JSON has no form for is spelt as `str` does: 2026-01-31 12:00:00. Columns that `rows` lack are
    passed over.
    """
    for name in columns:
        at = rows.schema.get_field_index(name)
        if at >= 0:
            rows = rows.set_column(at, name, _texts(rows.column(at)))
    return rows


def _texts(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    kind = column.type
    if (
        pa.types.is_null(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or kind == pa.string()
    ):
        return column.cast(pa.string())
    return pa.chunked_array([pa.array(map(_spelt, column.to_pylist()), pa.string())])


def _spelt(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (float, dict, list)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
