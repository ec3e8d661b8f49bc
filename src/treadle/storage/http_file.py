"""Files by HTTP, to read at any place: no byte is missing without an error."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any

from treadle.errors import ArgumentError
from treadle.extras import check_extra
from treadle.storage.http_client import HttpAnswer, HttpClient, HttpInfo, file_part

BLOCK_BYTES = 256 * 2**10
"""What is asked for at least after a jump, which may be followed by another."""


def look_at(url: str) -> HttpInfo:
    """What the server says of a file.

    Raises:
        MissingExtraError: aiohttp is not installed.
        ArgumentError: a pattern or a folder, which HTTP does not have.
        FileNotFoundError: the server has no such file.
        OSError: it cannot be reached, or refuses, with the URL.
    """
    _check(url)
    return HttpClient(url).look()


def _check(url: str) -> None:
    check_extra("http", f"reading {url}", "aiohttp")
    name = file_part(url)
    if any(mark in name for mark in "*["):
        raise ArgumentError(
            f"{url}: expected the URL of one file, found a pattern: files cannot be listed by HTTP; give one "
            "input for each file (a name that has such a character: write * as %2A and [ as %5B)"
        )
    if name.endswith("/") or name.count("/") < 3:
        raise ArgumentError(
            f"{url}: expected the URL of one file, found a folder: files cannot be listed by HTTP; give one "
            "input for each file"
        )


class HttpFile(io.RawIOBase):
    """A file by HTTP, to read, forwards in one request, and anywhere by one request for each jump.

    From a server that cannot give parts, a jump first copies the whole into a temporary file. Each answer is
    held against the size and the version that the server told when the file was opened.

    Raises:
        OSError: also from `read`, with an errno and the URL: the connection was cut or brings too little
            (bytes got, bytes expected), the file changed, or the server cannot be reached or refuses.
    """

    def __init__(self, url: str) -> None:
        _check(url)
        self._client = HttpClient(url)
        self._info = self._client.look()
        self._place = 0
        self._answer: HttpAnswer | None = None
        self._copy: Any = None

    def readable(self) -> bool:  # noqa: D102 - as in io
        return True

    def seekable(self) -> bool:  # noqa: D102 - as in io
        return True

    def tell(self) -> int:  # noqa: D102 - as in io
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte. Nothing is asked for before the next `read`, but for a size that is not known."""
        if whence == os.SEEK_END:
            self._place = self._known_size() + offset
        else:
            self._place = offset + (self._place if whence == os.SEEK_CUR else 0)
        return self._place

    def read(self, size: int | None = -1, /) -> bytes:
        """The next `size` bytes, fewer only at the end of the file; all that is left by default."""
        if size is None or size < 0:
            pieces = iter(lambda: self.read(BLOCK_BYTES), b"")
            return b"".join(pieces)
        pieces_got = []
        while size and (piece := self._next(size)):
            pieces_got.append(piece)
            self._place += len(piece)
            size -= len(piece)
        return b"".join(pieces_got)

    def close(self) -> None:
        """Let go of the connection and of the copy."""
        self._drop()
        if self._copy is not None:
            self._copy.close()
        super().close()

    def _next(self, size: int) -> bytes:
        """Some of the next bytes; b"" at the end."""
        if self._info.size is not None and self._place >= self._info.size:
            return b""
        if self._copy is not None:
            self._copy.seek(self._place)
            return bytes(self._copy.read(size))
        if self._answer is None or self._answer.place != self._place or self._answer.over:
            self._ask(size)
            return self._next(size) if self._answer is None else self._answer.read(size)
        return self._answer.read(size)

    def _ask(self, size: int) -> None:
        """Ask for the bytes from here: after a jump for a few, else for all to the end."""
        here = 0 if self._answer is None else self._answer.place
        jumped = self._place != here
        if not jumped and self._answer is not None and self._answer.to_end:
            return
        self._drop()
        if self._place and not self._info.ranges:
            self._make_copy()
            return
        end = self._place + max(size, BLOCK_BYTES) if jumped else None
        self._answer = self._client.ask(self._info, self._place, end)
        if self._answer.place != self._place:  # parts were promised, and the whole came
            self._drop()
            self._make_copy()

    def _known_size(self) -> int:
        if self._info.size is None and self._copy is None:
            self._drop()
            self._make_copy()
        if self._info.size is not None:
            return self._info.size
        return int(self._copy.seek(0, os.SEEK_END))

    def _make_copy(self) -> None:
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        try:
            self._answer = self._client.ask(self._info, 0, None)
            while piece := self._answer.read(2**20):
                copy.write(piece)
        except BaseException:
            copy.close()
            raise
        finally:
            self._drop()
        self._copy = copy

    def _drop(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None
