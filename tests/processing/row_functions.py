"""Functions that manifests of the tests name as entries: imported by the check and by workers."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from treadle.ext import Counters, ProcessResult, Reject

Row = dict[str, Any]


def double(row: Row) -> Row:
    return {**row, "n": row["n"] * 2}


def odd(row: Row) -> bool:
    return bool(row["n"] % 2)


def odd_or_none(row: Row) -> Row | None:
    return row if odd(row) else None


def inverse(row: Row) -> Row:
    return {**row, "inverse": 1 / row["n"]}


def repeat(row: Row) -> list[Row]:
    return [{"n": row["n"], "copy": copy} for copy in range(row["n"])]


def repeat_with_a_flaw(row: Row) -> list[Row]:
    """The last copy of 3 has another type."""
    copies = repeat(row)
    if row["n"] == 3:
        copies[-1]["copy"] = "last"
    return copies


def text_at_seven(row: Row) -> Row:
    return {"n": str(row["n"]) if row["n"] == 7 else row["n"]}


def with_time(row: Row) -> Row:
    at: object = datetime.datetime(2024, 1, 1 + row["n"])
    return {"n": row["n"], "at": "never" if row["n"] == 2 else at}


def of_numpy(row: Row) -> Row:
    return {"n": np.int64(row["n"]), "pair": (np.float32(0.5), 1), "vector": np.arange(2)}


def not_a_number(row: Row) -> Row:
    return {"n": float("nan") if row["n"] == 1 else 0.5}


def too_large(row: Row) -> Row:
    return {"n": 2**63 if row["n"] == 1 else row["n"]}


def numbers_of(batch: pa.RecordBatch) -> list[int]:
    return [int(row["n"]) for row in batch.to_pylist()]


def double_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    at = batch.schema.get_field_index("n")
    return batch.set_column(at, "n", pa.array([value * 2 for value in numbers_of(batch)], pa.int64()))


def odd_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows are left out, and nothing says which."""
    return batch.filter(pa.array([bool(value % 2) for value in numbers_of(batch)]))


def inverse_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column("inverse", pa.array([1 / value for value in numbers_of(batch)]))


def twice_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.Table.from_batches([batch, batch]).combine_chunks().to_batches()[0]


def refuse_batch(batch: pa.RecordBatch) -> ProcessResult:
    values = numbers_of(batch)
    kept = [at for at, value in enumerate(values) if value % 2]
    rejects = tuple(Reject(at, "n is 4") for at, value in enumerate(values) if value == 4)
    counters = Counters(
        len(values), len(kept), len(values) - len(kept) - len(rejects), len(rejects), {"seen": 1}
    )
    return ProcessResult({"rows": batch.take(pa.array(kept, pa.int64()))}, rejects, counters, kept=kept)


def process_id(row: Row) -> Row:
    return {"n": row["n"], "process": os.getpid()}


def needs_memory(row: Row) -> Row:
    """There is too little at n = 2, while a file named by the environment is there."""
    if row["n"] == 2 and Path(os.environ["TREADLE_TEST_SCARCE"]).exists():
        raise MemoryError
    return row
