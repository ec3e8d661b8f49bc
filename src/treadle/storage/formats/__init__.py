"""One file per format: how it is read and how it is written."""

from treadle.storage.formats.backends import read_backend_for, register_format, write_backend_for
from treadle.storage.formats.format import Format, PartWriter, ReadBackend, WriteBackend

__all__ = [
    "Format",
    "PartWriter",
    "ReadBackend",
    "WriteBackend",
    "read_backend_for",
    "register_format",
    "write_backend_for",
]
