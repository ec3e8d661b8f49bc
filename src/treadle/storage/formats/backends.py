"""The formats by name. The module of a built-in one is loaded when rows are read or written."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from treadle.errors import UnknownNameError
from treadle.kernel.registry import Registry
from treadle.storage.formats.csv_options import CsvOptions
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.formats.options import parse_options, refuse_unknown
from treadle.storage.formats.postgres_options import PostgresOptions
from treadle.storage.formats.text_options import TextOptions


@dataclass(frozen=True)
class Known:
    """A format, and what the check of a manifest asks of it without loading the module that has it."""

    format: Callable[[], Format]
    options: type | None
    written: bool


_KNOWN: Registry[Known] = Registry("format")


def register_format(format_: Format, options: type | None = None) -> Format:
    """Let datasets and outputs give `format_.name` as their backend.

    `options` is a frozen dataclass whose fields are the options of the format, None when it has none. The
    same format twice is no harm. Raises ArgumentError when the name is taken by another one.
    """
    name = format_.name
    if name not in _KNOWN or _KNOWN.get(name).format() is not format_:
        _KNOWN.register(name, Known(lambda: format_, options, written=format_.writer is not None))
    return format_


def known_formats(*, writing: bool = False) -> tuple[str, ...]:
    """The names, sorted: of all formats, or of those that can be written."""
    return tuple(name for name in _KNOWN.names() if not writing or _KNOWN.get(name).written)


def read_backend_for(backend: str) -> ReadBackend:
    """How to read the format of that name; UnknownNameError lists the known ones."""
    return _KNOWN.get(backend).format().reader


def write_backend_for(backend: str) -> WriteBackend:
    """How to write the format of that name; UnknownNameError lists those that can be written."""
    writer = _KNOWN.get(backend).format().writer
    if writer is None:
        raise UnknownNameError("format to write", backend, known_formats(writing=True))
    return writer


def check_options(backend: str, options: Mapping[str, object], *, reading: bool) -> None:
    """See that a format takes these options. Raises UnknownNameError for it, ArgumentError for an option."""
    names = known_formats(writing=not reading)
    if backend not in names:
        raise UnknownNameError("format" if reading else "format to write", backend, names)
    known = _KNOWN.get(backend).options
    if known is None:
        refuse_unknown(backend, [], options)
    else:
        parse_options(backend, known, options)


def _built_in(name: str, module: str, options: type | None = None) -> None:
    """A format that is read and written; `module` has it under its name in capitals."""

    def load() -> Format:
        found: Format = getattr(importlib.import_module(f"treadle.storage.formats.{module}"), name.upper())
        return found

    _KNOWN.register(name, Known(load, options, written=True))


_built_in("arrow", "arrow")
_built_in("csv", "delimited", CsvOptions)
_built_in("jsonl", "jsonl")
_built_in("parquet", "parquet")
_built_in("postgres", "postgres", PostgresOptions)
_built_in("text", "text", TextOptions)
