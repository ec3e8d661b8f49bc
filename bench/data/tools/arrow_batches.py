"""The work of the first case on a record batch, by Arrow's functions."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bench.data.rows import FEWEST, MOST


def clean(batch: pa.RecordBatch) -> pa.RecordBatch:
    """See `bench.data.rows`."""
    text = pc.utf8_lower(pc.utf8_normalize(batch["text"], form="NFC"))
    # Most white space is one space already: to match the rest is half the work of splitting and joining.
    text = pc.replace_substring_regex(text, pattern="[ \t\n]{2,}|[\t\n]", replacement=" ")
    text = pc.utf8_trim(text, characters=" ")
    words = pc.add(pc.cast(pc.count_substring(text, " "), pa.int64()), 1)
    made = batch.set_column(batch.schema.get_field_index("text"), "text", text)
    made = made.append_column("words", words)
    return made.filter(pc.and_(pc.greater_equal(words, FEWEST), pc.less_equal(words, MOST)))
