"""Vectors as columns: matrices of float32 in and out of Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treadle.errors import ArgumentError


def vector_column(vectors: NDArray[np.float32]) -> pa.FixedSizeListArray[Any, Any]:
    """A matrix (n, d) as a column of n fixed-size lists of float32."""
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1), pa.float32())
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def vector_matrix(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> NDArray[np.float32]:
    """A column of equally long lists of numbers as a matrix (n, d) of float32.

    Raises ArgumentError when it holds nulls or lists of different lengths.
    """
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    lengths = pc.unique(pc.list_value_length(column))
    if column.null_count or len(lengths) > 1:
        raise ArgumentError(
            f"vectors must be lists of one length without nulls, got lengths {lengths.to_pylist()}"
        )
    flat = pc.list_flatten(column).cast(pa.float32()).to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), -1) if len(column) else np.empty((0, 0), np.float32)
