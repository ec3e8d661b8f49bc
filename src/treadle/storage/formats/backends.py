"""The formats by name."""

from __future__ import annotations

from treadle.kernel.registry import Registry
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.formats.jsonl import JSONL
from treadle.storage.formats.parquet import PARQUET

_FORMATS: Registry[Format] = Registry("format")
for _each in (JSONL, PARQUET):
    _FORMATS.register(_each.name, _each)


def read_backend_for(backend: str) -> ReadBackend:
    """How to read the format of that name; UnknownNameError lists the known ones."""
    return _FORMATS.get(backend).reader


def write_backend_for(backend: str) -> WriteBackend:
    """How to write the format of that name; UnknownNameError lists the known ones."""
    return _FORMATS.get(backend).writer
