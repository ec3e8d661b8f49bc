"""The formats that are known by name."""

from __future__ import annotations

from treadle.kernel.registry import Registry
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.formats.jsonl import JSONL
from treadle.storage.formats.parquet import PARQUET

_FORMATS: Registry[Format] = Registry("format")


def register_format(added: Format) -> None:
    """Make a format known under its name; ArgumentError when another one has it."""
    _FORMATS.register(added.name, added)


def read_backend_for(backend: str) -> ReadBackend:
    """How to read the format of that name; UnknownNameError lists the known ones."""
    return _FORMATS.get(backend).reader


def write_backend_for(backend: str) -> WriteBackend:
    """How to write the format of that name; UnknownNameError lists the known ones."""
    return _FORMATS.get(backend).writer


for _each in (JSONL, PARQUET):
    register_format(_each)
