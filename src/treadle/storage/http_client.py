"""Requests by HTTP for one file, and what is wrong with the answers.

They go through the session of fsspec, so that its settings (headers, proxies, certificates) hold. Bytes are
taken as the server keeps them: no transport compression is asked for. A redirect is followed.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import fsspec

T = TypeVar("T")

_ANSWER_SECONDS = 60.0
_PLAIN = {"Accept-Encoding": "identity"}
_NO_HEAD = (HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
_ERRORS = {
    HTTPStatus.UNAUTHORIZED: errno.EACCES,
    HTTPStatus.FORBIDDEN: errno.EACCES,
    HTTPStatus.NOT_FOUND: errno.ENOENT,
    HTTPStatus.GONE: errno.ENOENT,
}


@dataclass(frozen=True)
class HttpInfo:
    """What a server says of a file: bytes (None: it does not say), a version, whether parts can be asked for.

    `version` is the entity tag, else the time of the last change, else empty.
    """

    size: int | None
    version: str
    ranges: bool


def is_http(path: str) -> bool:
    """Whether it is a URL of HTTP or HTTPS."""
    return path.lower().startswith(("http://", "https://"))


def file_part(path: str) -> str:
    """A URL of HTTP without query and fragment, so that it ends in the name of the file; else the path."""
    return re.split(r"[?#]", path, maxsplit=1)[0] if is_http(path) else path


class HttpClient:
    """Asks for one URL through the file system of fsspec.

    What fails is an OSError with an errno and the URL, FileNotFoundError when the server has no such file.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._fs: Any = fsspec.core.url_to_fs(url)[0]

    def look(self) -> HttpInfo:
        """What the server says of the file, in one request, or two where it does not know HEAD."""
        answer = self._send("HEAD", {})
        # Some servers do not know HEAD, or answer it without a length or with that of the empty answer.
        if answer.status in _NO_HEAD or (answer.status == HTTPStatus.OK and not _length(answer)):
            self.let_go(answer)
            answer = self._send("GET", {})
        self.let_go(answer)
        self._refuse(answer)
        size = _length(answer)
        ranges = size is not None and answer.headers.get("Accept-Ranges") == "bytes"
        return HttpInfo(size, _version(answer), ranges)

    def ask(self, info: HttpInfo, first: int, end: int | None) -> HttpAnswer:
        """The bytes [first, end) of the file, to its end by default; all when the server gives no part."""
        last = "" if end is None else str(end - 1)
        wanted = {"Range": f"bytes={first}-{last}"} if first or end is not None else {}
        answer = self._send("GET", wanted)
        try:
            self._refuse(answer)
            if answer.status != HTTPStatus.PARTIAL_CONTENT:
                first, end = 0, None
            self._check_place(answer, first)
            return HttpAnswer(self, answer, first, self._expected(info, answer, first, end), info, end)
        except BaseException:
            self.let_go(answer)
            raise

    def run(self, work: Coroutine[Any, Any, T], so_far: Callable[[], str] = str) -> T:
        """Do it on the loop of fsspec, with its failures as an OSError with the URL and how far it came."""
        import aiohttp  # here: an extra

        try:
            return fsspec.asyn.sync(self._fs.loop, _run, work)  # type: ignore[no-any-return]
        except (aiohttp.ClientError, OSError) as error:
            number = error.errno if isinstance(error, OSError) else None
            if number is None:
                number = errno.ETIMEDOUT if isinstance(error, TimeoutError) else errno.ECONNRESET
            said = f"{type(error).__name__}: {error}"
            if isinstance(error, aiohttp.ClientConnectorError):
                what = os.strerror(number) if number > 0 else error.strerror
                said = f"no connection to {error.host}:{error.port}: {what}"
            # A name that nobody knows has a number below 0, which is none of the system.
            raise OSError(max(number, 0) or errno.EHOSTUNREACH, f"{so_far()}{said}", self.url) from error

    def let_go(self, answer: Any) -> None:
        """Close the connection of an answer; not waited for, since a file may be collected on any thread."""
        self._fs.loop.call_soon_threadsafe(answer.close)

    def _send(self, method: str, headers: dict[str, str]) -> Any:
        return self.run(self._sent(method, headers))

    async def _sent(self, method: str, headers: dict[str, str]) -> Any:
        import aiohttp  # here: an extra

        session = await self._fs.set_session()
        # The usual limit on the whole time would cut a long file.
        limit = aiohttp.ClientTimeout(total=None, sock_connect=_ANSWER_SECONDS, sock_read=_ANSWER_SECONDS)
        given = {"timeout": limit, **self._fs.kwargs}
        given["headers"] = {**given.get("headers", {}), **_PLAIN, **headers}
        address = self._fs.encode_url(self.url)
        return await session.request(method, address, allow_redirects=True, auto_decompress=False, **given)

    def _refuse(self, answer: Any) -> None:
        if answer.status >= HTTPStatus.BAD_REQUEST:
            number = _ERRORS.get(answer.status, errno.EIO)
            raise OSError(number, f"the server answers {answer.status} {answer.reason}", self.url)
        encoding = answer.headers.get("Content-Encoding", "identity")
        if encoding != "identity" and not file_part(self.url).endswith((".gz", ".zst")):
            raise OSError(
                errno.EIO, f"expected the bytes as they are, the server sends them in {encoding}", self.url
            )

    def _check_place(self, answer: Any, first: int) -> None:
        sent = answer.headers.get("Content-Range", "no range")
        if answer.status == HTTPStatus.PARTIAL_CONTENT and not sent.startswith(f"bytes {first}-"):
            raise OSError(errno.EIO, f"expected the bytes from {first}, the server sends {sent}", self.url)

    def _expected(self, info: HttpInfo, answer: Any, first: int, end: int | None) -> int | None:
        """How many bytes must come; None when only their end will tell."""
        size = info.size
        told = _length(answer)
        version = _version(answer)
        if (size is not None and told is not None and told != size) or (
            version and info.version and version != info.version
        ):
            raise OSError(
                errno.ESTALE,
                f"changed while it was read: expected {size} bytes, version {info.version}, "
                f"found {told} bytes, version {version}",
                self.url,
            )
        size = told if size is None else size
        if size is None:
            if answer.headers.get("Transfer-Encoding") != "chunked":
                raise OSError(
                    errno.EIO, "the server tells no length, so nobody sees whether it is whole", self.url
                )
            return None
        return max(0, (size if end is None else min(end, size)) - first)


class HttpAnswer:
    """The body of an answer; `place` is that in the file of its next byte."""

    def __init__(
        self,
        client: HttpClient,
        answer: Any,
        first: int,
        expected: int | None,
        info: HttpInfo,
        end: int | None,
    ) -> None:
        self.place = first
        self.over = expected == 0
        self.to_end = end is None or (info.size is not None and end >= info.size)
        self._client = client
        self._answer = answer
        self._expected = expected
        self._got = 0

    def read(self, size: int) -> bytes:
        """Some bytes; b"" at the end, which comes when all have come that were expected."""
        if self.over:
            return b""
        left = size if self._expected is None else min(size, self._expected - self._got)
        piece = self._client.run(self._answer.content.read(left), self._so_far)
        if not piece and self._expected is not None:
            raise OSError(errno.ECONNRESET, f"{self._so_far()}the connection was closed", self._client.url)
        self._got += len(piece)
        self.place += len(piece)
        self.over = not piece or self._got == self._expected
        return bytes(piece)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.let_go(self._answer)

    def _so_far(self) -> str:
        expected = "an unknown number of" if self._expected is None else f"{self._expected:,}"
        # What was not yet handed out is dropped by the client at a failure, though it has come.
        got = max(self._got, self._answer.content.total_bytes)
        return f"got {got:,} of {expected} bytes: "


async def _run(work: Coroutine[Any, Any, T]) -> T:
    return await work


def _length(answer: Any) -> int | None:
    """The size of the whole file, as far as the answer tells."""
    if answer.status == HTTPStatus.PARTIAL_CONTENT:
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        return int(total) if total.isdigit() else None
    told = answer.headers.get("Content-Length", "")
    return int(told) if told.isdigit() else None


def _version(answer: Any) -> str:
    return str(answer.headers.get("ETag") or answer.headers.get("Last-Modified") or "")
