"""What a job writes to the files that Ray keeps of the output of each worker."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from treadle.fray.ray.ticket import Piece, Stream

LARGEST_PIECE = 1 << 20
"""Bytes; of a longer piece of output the last ones are kept."""

_STREAMS: tuple[tuple[Stream, int], ...] = (("stdout", 1), ("stderr", 2))


class Output:
    """Reads what comes to the files of this process from now on.

    They hold what child processes and compiled code write too, and they are there when the process is killed.
    """

    def __init__(self) -> None:
        self._places = {kind: _size(fd) for kind, fd in _files()}

    def reached(self) -> tuple[tuple[Stream, str, int], ...]:
        """How far each file was read."""
        return tuple((kind, _path(fd), self._places[kind]) for kind, fd in _STREAMS if kind in self._places)

    def read(self, *, whole_lines: bool) -> tuple[Piece, ...]:
        """What is new; with `whole_lines`, only up to the last line end."""
        found: list[Piece] = []
        for kind, fd in _STREAMS:
            begin = self._places.get(kind)
            if begin is None or (end := _size(fd)) <= begin:
                continue
            begin = max(begin, end - LARGEST_PIECE)
            piece = read_piece(_path(fd), begin, end)
            if whole_lines:
                piece = piece[: piece.rfind(b"\n") + 1]
            if piece:
                self._places[kind] = begin + len(piece)
                found.append((kind, piece))
        return tuple(found)


def read_piece(path: str, begin: int, end: int | None = None) -> bytes:
    """The file between two places, or its last part when that is too long; empty when it is gone."""
    with suppress(OSError), Path(path).open("rb") as file:
        end = file.seek(0, os.SEEK_END) if end is None else end
        file.seek(max(begin, end - LARGEST_PIECE))
        return file.read(max(0, end - file.tell()))
    return b""


def flush_streams() -> None:
    """Let what Python holds back come to the files; a stream may be closed, or none."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):
            stream.flush()


@lru_cache
def _files() -> tuple[tuple[Stream, int], ...]:
    return tuple((kind, fd) for kind, fd in _STREAMS if _is_file(fd))


def _is_file(fd: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return False


def _size(fd: int) -> int:
    return os.fstat(fd).st_size


@lru_cache
def _path(fd: int) -> str:
    if sys.platform == "darwin":
        return fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0").decode()
    return str(Path(f"/proc/self/fd/{fd}").readlink())
