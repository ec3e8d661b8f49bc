"""Opening a file that is read, wherever it is."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import BinaryIO, cast

import fsspec

from treadle.storage.http_client import is_http
from treadle.storage.http_file import HttpFile


def open_source(path: str) -> AbstractContextManager[BinaryIO]:
    """The bytes of a file on any fsspec path, to read and to seek in.

    By HTTP: what is missing is an error, and a server that gives no parts is enough; see `HttpFile`.
    Raises FileNotFoundError when there is none, an OSError with an errno when the storage fails.
    """
    if is_http(path):
        return cast("AbstractContextManager[BinaryIO]", HttpFile(path))
    return cast("AbstractContextManager[BinaryIO]", fsspec.open(path, "rb"))
