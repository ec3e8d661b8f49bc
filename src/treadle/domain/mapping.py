"""The global mapping: one id per term, from any number of partition registries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treadle.domain.columns import is_text
from treadle.errors import ArgumentError

_FIELDS: list[pa.Field[Any]] = [
    pa.field("term_id", pa.int32()),
    pa.field("term", pa.string()),
    pa.field("count", pa.int64()),
    pa.field("documents", pa.int64()),
]
MAPPING_SCHEMA = pa.schema(_FIELDS)


def number_terms(totals: pa.Table, *, min_count: int = 1, max_terms: int | None = None) -> pa.Table:
    """Number summed terms by count, largest first, then by term (in code point order).

    `totals` has each term once: term (text), count and documents (integers). So the ids depend on the sums
    alone, whatever the number and the order of the registries they come from. Terms below `min_count` get no
    id, nor does null; at most `max_terms` do. Result: `MAPPING_SCHEMA`.

    Raises ArgumentError for limits below 1, or totals of other types.
    """
    if min_count < 1 or (max_terms is not None and max_terms < 1):
        raise ArgumentError(f"min_count and max_terms must be at least 1, got {min_count} and {max_terms}")
    table = _typed(totals)
    wanted = pc.and_(pc.greater_equal(table["count"], pa.scalar(min_count)), pc.is_valid(table["term"]))
    table = table.filter(wanted).sort_by([("count", "descending"), ("term", "ascending")])
    table = table.slice(0, max_terms)
    ids = pa.array(range(table.num_rows), pa.int32())
    return table.add_column(0, "term_id", ids).select(MAPPING_SCHEMA.names).cast(MAPPING_SCHEMA)


def _typed(totals: pa.Table) -> pa.Table:
    """The sums under the types of the mapping."""
    schema = pa.schema(_FIELDS[1:])
    if not totals.num_columns:
        return schema.empty_table()
    if not is_text(totals.schema.field("term").type):
        raise ArgumentError(f"a registry holds terms as text, got {totals.schema.field('term').type}")
    try:
        return totals.cast(schema)
    except pa.ArrowException as error:
        raise ArgumentError(f"a registry holds counts as integers: {error}") from error
