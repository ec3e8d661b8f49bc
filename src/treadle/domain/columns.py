"""Vectors and tokens as Arrow columns: matrices of float32 in and out, lists of strings out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treadle.domain.result import Reject
from treadle.errors import ArgumentError


def vector_column(vectors: NDArray[np.float32]) -> pa.FixedSizeListArray[Any, Any]:
    """A matrix (n, d) as a column of n fixed-size lists of float32."""
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1), pa.float32())
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def vector_matrix(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> NDArray[np.float32]:
    """A column of equally long lists of numbers as a matrix (n, d) of float32.

    Raises ArgumentError when it holds anything else: nulls, lists of different lengths, numbers not finite.
    """
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not hasattr(column.type, "value_type") or not is_number(column.type.value_type):
        raise ArgumentError(f"vectors must be lists of numbers, got {column.type}")
    lengths = pc.unique(pc.list_value_length(column))
    if column.null_count or len(lengths) > 1:
        raise ArgumentError(
            f"vectors must be lists of one length without nulls, got lengths {lengths.to_pylist()}"
        )
    flat = pc.list_flatten(column).cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False)
    if not np.isfinite(flat).all():  # a null is NaN here
        raise ArgumentError("vectors must hold finite numbers, got a null, a NaN or an infinity")
    return flat.reshape(len(column), -1) if len(column) else np.empty((0, 0), np.float32)


def token_lists(batch: pa.RecordBatch, column: str) -> pa.Array[Any]:
    """The column as list<string>. Raises ArgumentError when it is anything else."""
    kind = batch.schema.field(column).type
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    if not (pa.types.is_null(inner) or (inner != kind and is_text(inner))):
        raise ArgumentError(f"column {column!r} is {kind}, expected lists of strings")
    return batch[column].cast(pa.list_(pa.string()))


def usable_tokens(batch: pa.RecordBatch, column: str) -> tuple[pa.Array[Any], tuple[Reject, ...]]:
    """The column as list<string>, null where it holds nothing of that kind; and each such row, refused."""
    given = batch[column]
    try:
        lists, wrong = token_lists(batch, column), None
    except ArgumentError as error:
        lists, wrong = pa.nulls(len(given), pa.list_(pa.string())), str(error)
    lost = np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False)).tolist()
    return lists, tuple(
        Reject(row, f"{column} is null")
        if wrong is None or not given[row].is_valid
        else Reject(row, wrong, "wrong-type")
        for row in lost
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether the values are strings, or all null."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)


def is_number(kind: pa.DataType) -> bool:
    """Whether the values are whole numbers or fractions."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
