"""The formats by name."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.errors import UnknownNameError
from treadle.kernel.registry import Registry
from treadle.storage.formats.arrow import ARROW
from treadle.storage.formats.delimited import CSV
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.formats.jsonl import JSONL
from treadle.storage.formats.options import parse_options, refuse_unknown
from treadle.storage.formats.parquet import PARQUET
from treadle.storage.formats.postgres import POSTGRES
from treadle.storage.formats.text import TEXT

_FORMATS: Registry[Format] = Registry("format")


def register_format(format_: Format) -> Format:
    """Let datasets and outputs give `format_.name` as their backend. ArgumentError when the name is taken."""
    return _FORMATS.register(format_.name, format_)


def known_formats(*, writing: bool = False) -> tuple[str, ...]:
    """The names, sorted: of all formats, or of those that can be written."""
    return tuple(name for name in _FORMATS.names() if not writing or _FORMATS.get(name).writer is not None)


def read_backend_for(backend: str) -> ReadBackend:
    """How to read the format of that name; UnknownNameError lists the known ones."""
    return _FORMATS.get(backend).reader


def write_backend_for(backend: str) -> WriteBackend:
    """How to write the format of that name; UnknownNameError lists those that can be written."""
    writer = _FORMATS.get(backend).writer
    if writer is None:
        raise UnknownNameError("format to write", backend, known_formats(writing=True))
    return writer


def check_options(backend: str, options: Mapping[str, object], *, reading: bool) -> None:
    """See that a format takes these options. Raises UnknownNameError for it, ArgumentError for an option."""
    _ = read_backend_for(backend) if reading else write_backend_for(backend)
    known = _FORMATS.get(backend).options
    if known is None:
        refuse_unknown(backend, [], options)
    else:
        parse_options(backend, known, options)


for _each in (ARROW, CSV, JSONL, PARQUET, POSTGRES, TEXT):
    register_format(_each)
