"""Reading what an earlier phase of the run has written into a scratch output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from treadle.storage import Dataset, UnitRecord, read_table


def scratch_tables(records: Sequence[UnitRecord], output: str) -> Iterator[pa.Table]:
    """The rows of that scratch output, a table for each file, in the order of the units."""
    for record in records:
        for file in record.files:
            if file.output == output:
                yield read_table(Dataset("arrow", file.path))
