"""The formats by name. The module of one is loaded when rows are read or written: its options need none."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.errors import UnknownNameError
from treadle.kernel.registry import Registry
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.formats.options import parse_options, refuse_unknown

_FORMATS: Registry[Format] = Registry("format")
_OPTIONS: Registry[type | None] = Registry("format")
_WRITTEN: set[str] = set()


def register_format(format_: Format) -> Format:
    """Let datasets and outputs give `format_.name` as their backend. ArgumentError when the name is taken."""
    _FORMATS.register(format_.name, format_)
    _OPTIONS.register(format_.name, format_.options)
    if format_.writer is not None:
        _WRITTEN.add(format_.name)
    return format_


def known_formats(*, writing: bool = False) -> tuple[str, ...]:
    """The names, sorted: of all formats, or of those that can be written."""
    return tuple(name for name in _FORMATS.names() if not writing or name in _WRITTEN)


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
    names = known_formats(writing=not reading)
    if backend not in names:
        raise UnknownNameError("format" if reading else "format to write", backend, names)
    known = _OPTIONS.get(backend)
    if known is None:
        refuse_unknown(backend, [], options)
    else:
        parse_options(backend, known, options)


def _built_in(name: str, module: str, options: tuple[str, str] | None = None) -> None:
    """A format that is read and written; `module` has it under its name in capitals."""
    room = "treadle.storage.formats"
    _FORMATS.defer(name, f"{room}.{module}", name.upper())
    _WRITTEN.add(name)
    if options is None:
        _OPTIONS.register(name, None)
    else:
        _OPTIONS.defer(name, f"{room}.{options[0]}", options[1])


_built_in("arrow", "arrow")
_built_in("csv", "delimited", ("csv_options", "CsvOptions"))
_built_in("jsonl", "jsonl")
_built_in("parquet", "parquet")
_built_in("postgres", "postgres", ("postgres_options", "PostgresOptions"))
_built_in("text", "text", ("text_options", "TextOptions"))
