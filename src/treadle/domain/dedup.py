"""Which rows are the same: a digest of the chosen columns, and the first row of each digest.

Nearly equal texts are found by `treadle.domain.minhash`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treadle.errors import ArgumentError

DIGEST_BYTES = 16

_NOT_WORDS = re.compile(r"[\W_]+")


def normalized(text: str) -> str:
    """NFKC (Unicode Standard Annex 15), lower case, and one space for anything between letters and digits.

    Marks that belong to a letter are kept, so that scripts which need them do not lose their vowels.
    """
    text = unicodedata.normalize("NFKC", text).lower()
    if text.isascii():
        return _NOT_WORDS.sub(" ", text).strip()
    kept = "".join(char if _is_word(char) else " " for char in text)
    return " ".join(kept.split())


def exact_digests(rows: Iterable[Sequence[object]]) -> pa.Array[Any]:
    """16 bytes of BLAKE2b for each row: equal when all values are, type by type.

    1, 1.0, "1", true and null are five values; the width of a number is no part of it. A NaN equals itself.
    """
    return _digests(b"".join(map(_encoded, row)) for row in rows)


def normalized_digests(rows: Iterable[Sequence[object]]) -> pa.Array[Any]:
    """As `exact_digests`, after `normalized` where a value is text."""
    return exact_digests(
        [normalized(each) if isinstance(each, str) else each for each in row] for row in rows
    )


def first_of_each(values: pa.Array[Any]) -> NDArray[np.int64]:
    """For each place the first place that holds the same value; there are no nulls."""
    codes = codes_of(values)
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of several writes the last one stays
    return first[codes]


def codes_of(values: pa.Array[Any]) -> NDArray[np.int64]:
    """A number for each value, equal for equal ones, from 0 in the order of appearance."""
    encoded: Any = values.dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(), np.int64)


def from_bytes(values: pa.ChunkedArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    """The bytes of a column of equally long values, one after the other, as numbers of that kind."""
    if not len(values):
        return np.empty(0, kind)
    column = pa.concat_arrays(values.chunks)
    width = column.type.byte_width
    data = memoryview(column.buffers()[1] or b"")
    return np.frombuffer(data[column.offset * width : (column.offset + len(column)) * width], kind)


def as_bytes(rows: NDArray[Any]) -> pa.Array[Any]:
    """A matrix as a column: the bytes of each of its rows."""
    rows = np.ascontiguousarray(rows)
    width = rows.itemsize * rows.shape[1]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(rows), [None, pa.py_buffer(rows.data)])


def _digests(contents: Iterable[bytes]) -> pa.Array[Any]:
    found = [hashlib.blake2b(each, digest_size=DIGEST_BYTES).digest() for each in contents]
    return pa.array(found, pa.binary(DIGEST_BYTES))


def _encoded(value: object) -> bytes:
    """Bytes that no other value has, nor any value followed by others: a letter, a length, the content."""
    if isinstance(value, str):
        return _framed(b"s", value.encode("utf-8", "surrogatepass"))
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int):
        return _framed(b"i", str(value).encode())
    if isinstance(value, float):
        return _framed(b"d", (value + 0.0).hex().encode())
    if isinstance(value, bytes):
        return _framed(b"b", value)
    return _encoded_nested(value)


def _encoded_nested(value: object) -> bytes:
    if isinstance(value, Mapping):
        items = sorted((str(key), each) for key, each in value.items())
        return _framed(b"m", b"".join(_encoded(key) + _encoded(each) for key, each in items))
    if isinstance(value, (list, tuple)):
        return _framed(b"l", b"".join(map(_encoded, value)))
    if isinstance(value, (timedelta, UUID)) or hasattr(value, "isoformat") or hasattr(value, "as_tuple"):
        return _framed(b"o", f"{type(value).__name__} {value}".encode())
    raise ArgumentError(f"a {type(value).__name__} cannot be compared")


def _framed(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(8, "big") + content


def _is_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M"
