"""How the schemas of batches that belong together widen into one.

New columns may come, a column of nulls may get a type, integers may become fractions; any other change is
refused.
"""

from __future__ import annotations

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
    return pa.concat_tables(
        [schema.empty_table(), rows.replace_schema_metadata(None)], promote_options="permissive"
    )


def _check_names(schema: pa.Schema) -> None:
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"column {twice!r} appears more than once")
