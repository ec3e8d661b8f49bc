"""Vectors from rows: the usable ones as a matrix, the others as rejects with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treadle.domain.result import Reject
from treadle.processing.streams import check_columns
from treadle.storage import RowBatch

_LONGEST = float(np.finfo(np.float32).max) / 16
"""The squared length of a vector stays below this, so that squared distances fit float32."""


@dataclass(frozen=True)
class Vectors:
    """The vectors of a batch: `matrix` (n, d), and `indices` (n,) of its rows in the batch, ascending."""

    matrix: NDArray[np.float32]
    indices: NDArray[np.int64]
    rejects: tuple[Reject, ...]


def vectors_of(batch: RowBatch, column: str, dimensions: int | None) -> Vectors:
    """The vectors of `column`, which is a list of numbers in each row.

    A row is rejected when its vector is null or no list of numbers, holds a number that is null or not
    finite, does not have `dimensions` numbers (None: as many as the first vector in the batch), or is too
    long to be measured.

    Raises MissingColumnError.
    """
    if not batch.num_rows:
        return no_vectors((), dimensions)
    check_columns(batch, [column])
    given = batch.rows[column]
    if not _holds_vectors(given.type):
        return no_vectors(_wrong(column, given), dimensions)
    # Not safe: whole numbers are rounded to float32 as fractions are.
    lists: Any = given.cast(pa.list_(pa.float32()), safe=False)
    lengths = pc.fill_null(pc.list_value_length(lists), -1).to_numpy(zero_copy_only=False)
    if dimensions is None:
        dimensions = int(next(iter(lengths[lengths > 0]), 0))
    candidates = np.flatnonzero((lengths == dimensions) & (lengths > 0))
    values = pc.list_flatten(lists.take(candidates)).to_numpy(zero_copy_only=False)
    matrix = values.reshape(len(candidates), dimensions)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.einsum("nd,nd->n", matrix, matrix) < _LONGEST
    indices = candidates[finite]
    lost = np.setdiff1d(np.arange(len(lengths)), indices)
    rejects = tuple(Reject(int(row), _reason(column, int(lengths[row]), dimensions)) for row in lost)
    return Vectors(matrix[finite], indices, rejects)


def no_vectors(rejects: tuple[Reject, ...], dimensions: int | None = None) -> Vectors:
    """No vector, and why."""
    return Vectors(np.empty((0, dimensions or 0), np.float32), np.empty(0, np.int64), rejects)


def _holds_vectors(kind: Any) -> bool:
    """Whether the values are lists of numbers, or all null."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    inner = kind.value_type if any(each(kind) for each in lists) else None
    numbers = (pa.types.is_null, pa.types.is_integer, pa.types.is_floating)
    return pa.types.is_null(kind) or (inner is not None and any(each(inner) for each in numbers))


def _wrong(column: str, given: pa.Array[Any]) -> tuple[Reject, ...]:
    reason = f"column {column!r} is {given.type}, expected lists of numbers"
    return tuple(
        Reject(row, reason, "wrong-type") if given[row].is_valid else Reject(row, f"{column} is null")
        for row in range(len(given))
    )


def _reason(column: str, length: int, dimensions: int) -> str:
    if length < 0:
        return f"{column} is null"
    if length == 0:
        return f"{column} is empty"
    if length != dimensions:
        return f"{column} has {length} numbers, expected {dimensions}"
    return f"{column} holds a number that is null, not finite or too large"
