"""Hashes by which keys are spread over buckets: the same on every machine, in every process and shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_ROWS = 65_536
_NULL = np.uint64(0x9E3779B97F4A7C15)
_EXACT = 2**53


def key_hashes(columns: Sequence[pa.Array[Any] | pa.ChunkedArray[Any]]) -> Hashes:
    """One 64-bit hash a row of the columns, which are of equal length.

    Equal keys have equal hashes whatever the type that a shard gave them: 1 as int32, int64 or float64, text
    plain, large or in a dictionary. Nothing is promised against keys that were chosen to collide.

    Raises ArrowException for a type that is no key (see `Grouping`).
    """
    whole = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns]
    rows = len(whole[0])
    hashes = np.zeros(rows, np.uint64)
    for start in range(0, rows, _ROWS):
        part = hashes[start : start + _ROWS]
        for column in whole:
            part[:] = _mixed(part * np.uint64(31) + _column(column.slice(start, _ROWS)))
    return hashes


def buckets_of(hashes: Hashes, buckets: int) -> NDArray[np.int64]:
    """The bucket of each hash: equal ranges of hashes, so that a bucket of few lies in few of many."""
    return ((hashes >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)


def _column(column: pa.Array[Any]) -> Hashes:
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _NULL)
    if pa.types.is_dictionary(kind):
        return _column(column.cast(kind.value_type))
    values = _bytes(column) if _is_bytes(kind) else _numbers(column)
    return np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, values)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def _numbers(column: pa.Array[Any]) -> Hashes:
    """By the bits of the float64 where a whole number is one exactly, else by its own."""
    kind = column.type
    if pa.types.is_floating(kind):
        floats = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        return _mixed((floats + 0.0).view(np.uint64))
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    whole = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    exact = (whole >= -_EXACT) & (whole <= _EXACT)
    return _mixed(np.where(exact, whole.astype(np.float64).view(np.uint64), whole.view(np.uint64)))


def _bytes(column: pa.Array[Any]) -> Hashes:
    """The sum of the bytes, each times a factor of its position (multilinear hashing), with the length."""
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offset_buffer, data_buffer = (memoryview(each or b"") for each in column.buffers())
    offsets = np.frombuffer(offset_buffer, np.int64 if wide else np.int32).astype(np.int64)
    offsets = offsets[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets)
    sums = np.zeros(len(column), np.uint64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        data = np.frombuffer(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
        starts = offsets[:-1] - offsets[0]
        places = np.arange(len(data)) - np.repeat(starts, lengths)
        factors = _mixed(np.arange(1, int(lengths.max()) + 1, dtype=np.uint64)) | np.uint64(1)
        terms = (data.astype(np.uint64) + np.uint64(1)) * factors[places]
        sums[filled] = np.add.reduceat(terms, starts[filled])
    return _mixed(sums + lengths.astype(np.uint64))


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
