"""Reads the header of a GGUF file: its metadata, and where its tensors lie.

Everything is checked against the length of the file, so that a truncated or damaged one is refused
before any work. (`gguf.GGUFReader` makes several numpy objects of every word of a vocabulary, which
takes seconds where this takes a tenth of one, and reads on through nothing when a length is damaged.)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from treadle.engine.weights.regular_file import check_regular
from treadle.errors import ArtifactError

T = TypeVar("T")

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_STRING, _LIST = 8, 9
_NUMBERS = dict(enumerate(("B", "b", "H", "h", "I", "i", "f", "?"))) | {10: "Q", 11: "q", 12: "d"}
# Far above what any model has. Python takes several times the room that a value takes in the file.
_MOST_DIMENSIONS, _MOST_NAMES, _MOST_VALUES = 4, 2**16, 2**22


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies; `shape` counts rows first, `kind` is a number of `GGMLQuantizationType`."""

    shape: tuple[int, ...]
    kind: int
    offset: int

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class GgufFile:
    """The header of a file; `data` is all of it, memory-mapped, and `start` where tensors begin."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, StoredTensor]
    data: npt.NDArray[np.uint8]
    start: int


def read_gguf(path: Path) -> GgufFile:
    """Read the header of a GGUF file.

    Raises:
        ArtifactError: it is no GGUF file, or ends within its header.
    """
    try:
        check_regular(path)
        # Copied where it is written, so that torch takes it without a warning; nobody writes.
        data = np.memmap(path, np.uint8, mode="c")
        return _read(path, data)
    except (ValueError, OSError, OverflowError, struct.error) as error:
        raise ArtifactError(
            f"{path}: cannot be read as GGUF ({error}); "
            "the file is truncated or of another kind: fetch it again"
        ) from error


def _read(path: Path, data: npt.NDArray[np.uint8]) -> GgufFile:
    cursor = _Cursor(data.data)
    if (magic := bytes(cursor.take(4))) != _MAGIC:
        raise ValueError(f"it begins with {magic!r}")
    if (version := cursor.number("I")) not in _VERSIONS:
        raise ValueError(f"it has version {version}, known: {_VERSIONS}")
    n_tensors, n_values = cursor.number("Q"), cursor.number("Q")
    if max(n_tensors, n_values) > _MOST_NAMES:
        raise ValueError(f"it has {n_tensors} tensors and {n_values} values, at most {_MOST_NAMES} are known")
    metadata = _unique((cursor.text(), cursor.value(cursor.number("I"))) for _ in range(n_values))
    tensors = _unique((cursor.text(), _stored(cursor)) for _ in range(n_tensors))
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1:
        raise ValueError(f"general.alignment is {alignment!r}")
    if astray := [name for name, tensor in tensors.items() if tensor.offset % alignment]:
        raise ValueError(f"tensor {astray[0]!r} does not begin at a multiple of {alignment} bytes")
    return GgufFile(path, metadata, tensors, data, -(-cursor.at // alignment) * alignment)


class _Cursor:
    """Reads forward through bytes and stops where they end."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.at = 0

    def take(self, size: int) -> memoryview:
        found = self._data[self.at : self.at + size]
        if len(found) < size:
            raise ValueError(f"it ends within what it says, at byte {self.at:,}")
        self.at += size
        return found

    def number(self, code: str) -> Any:
        return self.numbers(code, 1)[0]

    def numbers(self, code: str, count: int) -> tuple[Any, ...]:
        taken = self.take(count * struct.calcsize(f"<{code}"))
        return struct.unpack(f"<{count}{code}", taken)

    def text(self) -> str:
        # The place of a damaged text is worth more than its bytes.
        begin = self.at
        try:
            return str(self.take(self.number("Q")), "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"damaged text at byte {begin:,}: {error.reason}") from error

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _LIST:
            return self._list()
        return self.number(_code(kind))

    def _list(self) -> list[Any]:
        kind, count = self.number("I"), self.number("Q")
        if count > _MOST_VALUES:
            raise ValueError(f"a list has {count} values, at most {_MOST_VALUES} are known")
        if kind == _STRING:
            return [self.text() for _ in range(count)]
        if kind == _LIST:
            raise ValueError("a list of lists is not known here")
        return list(self.numbers(_code(kind), count))


def _code(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"a value has the unknown type {kind}")
    return _NUMBERS[kind]


def _stored(cursor: _Cursor) -> StoredTensor:
    dimensions = cursor.number("I")
    if dimensions > _MOST_DIMENSIONS:
        raise ValueError(f"a tensor has {dimensions} dimensions, at most {_MOST_DIMENSIONS} are known")
    sizes = cursor.numbers("Q", dimensions)
    if 0 in sizes:
        raise ValueError(f"a tensor of {sizes} numbers holds none")
    return StoredTensor(tuple(reversed(sizes)), cursor.number("I"), cursor.number("Q"))


def _unique(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} stands in it twice")
        found[name] = value
    return found
