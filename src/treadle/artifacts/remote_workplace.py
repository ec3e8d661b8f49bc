"""Where bodies write in an object store: a folder for each attempt, below the output path, which stays."""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import Iterable
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from treadle.artifacts.prefix import join
from treadle.artifacts.record import FileEntry


class RemoteWorkplace:
    """See `Workplace`. Folders exist by what is in them. A step may have its place on another storage."""

    def open(self, output_path: str) -> RemoteFolder:
        """See `Workplace`."""
        return RemoteFolder(_filesystem(output_path), join(output_path, secrets.token_hex(16)))

    def stand(self, folder: str, files: Iterable[FileEntry]) -> bool:
        """See `Workplace`."""
        return {each.path: each.bytes for each in files}.items() <= {
            each.path: each.bytes for each in list_files(_filesystem(folder), folder)
        }.items()

    def tidy(self) -> None:
        """Nothing is kept."""

    def sweep(self) -> None:
        """Nothing: what a dead attempt left cannot be told from what a living one writes; `gc` does."""


def _filesystem(url: str) -> AbstractFileSystem:
    return _filesystem_of("/".join(url.split("/", 3)[:3]))


@functools.lru_cache(maxsize=64)
def _filesystem_of(root: str) -> AbstractFileSystem:
    """The file system at `protocol://bucket`; finding it takes longer than all else about a folder."""
    return fsspec.url_to_fs(root)[0]


class RemoteFolder:
    """See `WorkFolder`."""

    def __init__(self, fs: AbstractFileSystem, path: str) -> None:
        self._fs = fs
        self.path = path
        self.location = path.rpartition("/")[2]  # so that it is right also where the store is copied to
        self._published = False

    def files(self) -> tuple[FileEntry, ...]:
        """See `WorkFolder`."""
        return list_files(self._fs, self.path)

    def publish(self) -> None:
        """Nothing moves: the record makes it the output."""
        self._published = True

    def close(self) -> None:
        """See `WorkFolder`."""
        if not self._published and list_files(self._fs, self.path):
            with contextlib.suppress(FileNotFoundError):
                self._fs.rm(self.path, recursive=True)


def list_files(fs: AbstractFileSystem, folder: str) -> tuple[FileEntry, ...]:
    """The objects below a URL, sorted by path."""
    if fs.protocol == "memory" and not fs.store:  # after steps without files; `find` takes its time to say so
        return ()
    fs.invalidate_cache()
    found: dict[str, dict[str, Any]] = fs.find(folder, detail=True)
    start = len(fs._strip_protocol(folder)) + 1
    return tuple(
        FileEntry(path[start:], int(info["size"]), _checksum(info)) for path, info in sorted(found.items())
    )


def _checksum(info: dict[str, Any]) -> str:
    stated = info.get("ETag") or info.get("etag") or info.get("md5Hash") or info.get("crc32c") or ""
    unquoted = str(stated).strip('"')
    return f"etag:{unquoted}" if unquoted else ""
