"""Streams of bytes through their compression, which the suffix of a file tells: none, `.gz`, `.zst` (zstd).

A compressed file may be several streams one after the other. One that was cut or is corrupt gives what comes
before the break, and then says why it breaks; a failing disk or network is raised as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import IOBase
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from treadle.storage.atomic import abandon_file, finish_file
from treadle.storage.http_client import file_part
from treadle.storage.source_file import open_source

_INPUT = 256 * 2**10
_SUFFIXES = {".gz": "gzip", ".zst": "zstd"}
_GZIP_LEVEL = 6
_GZIP_FRAME = 31  # zlib's number for a stream with the header of gzip


class Stream(Protocol):
    """The bytes of a file after decompression. `broken`, once `read` came to the end: why it is not all."""

    broken: str | None

    def read(self, size: int) -> bytes:
        """The next bytes, `size` of them at most; b"" at the end."""


def codec_of(path: str) -> str:
    """The compression that the suffix of a path tells: "none", "gzip" or "zstd"."""
    name = file_part(path)
    return next((codec for suffix, codec in _SUFFIXES.items() if name.endswith(suffix)), "none")


def without_codec(path: str) -> str:
    """The path without the suffix of its compression."""
    return next((path.removesuffix(suffix) for suffix in _SUFFIXES if path.endswith(suffix)), path)


@contextmanager
def open_stream(path: str, first: int = 0) -> Iterator[Stream]:
    """A file to read, decompressed as its suffix tells; `first`: where to begin without compression."""
    codec = codec_of(path)
    with open_source(path) as file:
        if codec == "gzip":
            yield _GzipStream(file)
        elif codec == "zstd":
            yield _ZstdStream(file, path)
        else:
            file.seek(first)
            yield _PlainStream(file)


def read_full(stream: Stream, size: int) -> bytes:
    """The next `size` bytes; fewer only at the end. So blocks do not depend on how a file system answers."""
    block = stream.read(size)
    if not block or len(block) == size:
        return block
    blocks = [block]
    missing = size - len(block)
    while missing and (block := stream.read(missing)):
        blocks.append(block)
        missing -= len(block)
    return b"".join(blocks)


class _PlainStream:
    def __init__(self, file: BinaryIO) -> None:
        self.broken: str | None = None
        self.read = file.read


class _GzipStream:
    """One gzip member after the other; zeros after the last are padding, as gzip itself has it."""

    def __init__(self, file: BinaryIO) -> None:
        self.broken: str | None = None
        self._file = file
        self._held = b""
        self._members = 0
        self._member: zlib._Decompress | None = None

    def read(self, size: int) -> bytes:
        while self.broken is None and (member := self._current()) is not None:
            data = self._held or self._file.read(_INPUT)
            block = self._decompress(member, data, size)
            if block:
                return block
            if not data and self._member is not None and self.broken is None:
                self.broken = "the gzip stream breaks here: it ends before its end mark"
        return b""

    def _current(self) -> zlib._Decompress | None:
        """The member that is read, if need be the next one; None at the end of the file."""
        while self._member is None:
            if self._held:
                self._members += 1
                self._member = zlib.decompressobj(_GZIP_FRAME)
            elif data := self._file.read(_INPUT):
                self._held = data.lstrip(b"\0") if self._members else data
            else:
                return None
        return self._member

    def _decompress(self, member: zlib._Decompress, data: bytes, size: int) -> bytes:
        before = member.copy()
        try:
            block = member.decompress(data, size)
        except zlib.error as error:
            self.broken = f"the gzip stream breaks here: {error}"
            return _as_far_as_possible(before, data)
        self._held = member.unconsumed_tail
        if member.eof:
            self._held = member.unused_data.lstrip(b"\0")
            self._member = None
        return block


def _as_far_as_possible(member: zlib._Decompress, data: bytes) -> bytes:
    """What comes before the break: an error loses the output of its call, so the calls are made small."""
    found = []
    try:
        for place in range(len(data)):
            found.append(member.decompress(data[place : place + 1]))  # noqa: PERF401
    except zlib.error:
        pass
    return b"".join(found)


class _ZstdStream:
    """Zstandard frames through Arrow, which tells a stream that was cut."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.broken: str | None = None
        self._path = path
        self._source = _Source(file)
        self._stream = _unpacked(self._source)
        self._given = 0

    def read(self, size: int) -> bytes:
        if self.broken is not None:
            return b""
        try:
            block = self._stream.read(size)
        except OSError as error:
            if self._source.failed:
                raise
            self.broken = f"the zstd stream breaks here: {error}"
            block = self._rest()
        self._given += len(block)
        return block

    def _rest(self) -> bytes:
        """What comes before the break: an error loses the output of its call, so the calls are small."""
        rest = []
        with open_source(self._path) as file:
            source = _Source(file, careful_from=max(0, self._source.position - 2 * _INPUT))
            stream = _unpacked(source)
            try:
                skip = self._given
                while skip:
                    skip -= len(stream.read(min(skip, _INPUT)))
                while byte := stream.read(1):
                    rest.append(byte)
            except OSError:
                if source.failed:
                    raise
        return b"".join(rest)


class _Source:
    """A file as Arrow reads it, which keeps apart the failures of the file from those of its content."""

    closed = False

    def __init__(self, file: BinaryIO, careful_from: int | None = None) -> None:
        self.failed = False
        self.position = 0
        self._file = file
        self._careful_from = careful_from

    def read(self, size: int) -> bytes:
        if self._careful_from is not None:
            left = self._careful_from - self.position
            size = min(size, left) if left > 0 else 1
        try:
            data = self._file.read(size)
        except BaseException:
            self.failed = True
            raise
        self.position += len(data)
        return data

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return self.position

    def close(self) -> None:
        self.closed = True


def _unpacked(source: _Source) -> pa.CompressedInputStream:
    return pa.CompressedInputStream(pa.PythonFile(cast("IOBase", source), "r"), "zstd")


class OutputStream:
    """A new local file that is written through a compression: "none", "gzip" or "zstd".

    The same bytes written in the same pieces give the same file: gzip has no time and no name in it.
    """

    def __init__(self, path: Path, codec: str) -> None:
        self._file = path.open("xb")
        self._packer = _PACKERS[codec]()

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(self._packer.pack(data))

    def close(self) -> None:
        """Finish the file and sync it."""
        self._file.write(self._packer.finish())
        finish_file(self._file)

    def abandon(self) -> None:
        """Let go of the file without another write, which could fail on a full disk."""
        abandon_file(self._file)


class _Packer(Protocol):
    def pack(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class _NoPacker:
    def pack(self, data: bytes) -> bytes:
        return data

    def finish(self) -> bytes:
        return b""


class _GzipPacker:
    def __init__(self) -> None:
        self._member = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FRAME)
        self.pack = self._member.compress

    def finish(self) -> bytes:
        return self._member.flush()


class _ZstdPacker:
    """One frame, of Arrow's level."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._stream = pa.CompressedOutputStream(pa.PythonFile(cast("IOBase", self._sink), "w"), "zstd")

    def pack(self, data: bytes) -> bytes:
        self._stream.write(data)
        return self._sink.take()

    def finish(self) -> bytes:
        self._stream.close()
        return self._sink.take()


class _Sink:
    """Memory that Arrow writes to."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self.closed = True


_PACKERS: dict[str, type[_NoPacker | _GzipPacker | _ZstdPacker]] = {
    "none": _NoPacker,
    "gzip": _GzipPacker,
    "zstd": _ZstdPacker,
}
