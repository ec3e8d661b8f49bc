"""Where bodies write in an object store: a folder for each attempt, below the output path, which stays."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
from collections.abc import Iterable
from functools import partial
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from treadle.artifacts.prefix import join
from treadle.artifacts.record import FileEntry
from treadle.storage.reach import find, is_s3, path_at, reach, root_of


class RemoteWorkplace:
    """See `Workplace`. Folders exist by what is in them. A step may have its place on another storage."""

    def open(self, output_path: str) -> RemoteFolder:
        """See `Workplace`."""
        return RemoteFolder(join(output_path, secrets.token_hex(16)))

    def stand(self, folder: str, files: Iterable[FileEntry]) -> bool:
        """See `Workplace`."""
        return {each.path: each.bytes for each in files}.items() <= {
            each.path: each.bytes for each in list_files(folder)
        }.items()

    def tidy(self) -> None:
        """Nothing is kept."""

    def sweep(self) -> None:
        """Nothing: what a dead attempt left cannot be told from what a living one writes; `gc` does."""


class RemoteFolder:
    """See `WorkFolder`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.location = path.rpartition("/")[2]  # so that it is right also where the store is copied to
        self._published = False

    def files(self) -> tuple[FileEntry, ...]:
        """See `WorkFolder`."""
        return list_files(self.path)

    def publish(self) -> None:
        """Nothing moves: the record makes it the output."""
        self._published = True

    def close(self) -> None:
        """See `WorkFolder`."""
        if not self._published:
            remove_files(self.path)
            forget_listings(self.path)


def list_files(folder: str) -> tuple[FileEntry, ...]:
    """The objects below a URL, sorted by path.

    Raises:
        ArtifactError: the storage cannot be reached, or refuses.
    """
    way = reach(folder)
    if _is_empty_memory(way.fs()):  # after steps without files; `find` takes its time to say so
        return ()
    forget_listings(folder)
    return way.ask(partial(_listed, folder=folder), "list", folder)


def remove_files(folder: str) -> bool:
    """Remove the objects below a URL; False when there are none. Raises ArtifactError as `list_files`."""
    files = list_files(folder)
    if files:
        reach(folder).ask(partial(_removed, folder=folder, files=files), "remove", folder)
    return bool(files)


def forget_listings(url: str) -> None:
    """What the functions of steps get from fsspec keeps listings, which are old now."""
    _users(root_of(url), os.getpid()).invalidate_cache()


def _is_empty_memory(fs: Any) -> bool:
    return fs.protocol == "memory" and not fs.store


def _listed(fs: Any, folder: str) -> tuple[FileEntry, ...]:
    start = path_at(fs, folder)
    found = sorted(find(fs, start).items())
    return tuple(
        FileEntry(path[len(start) + 1 :], int(info["size"]), _checksum(info)) for path, info in found
    )


def _removed(fs: Any, folder: str, files: Iterable[FileEntry]) -> None:
    paths = [f"{path_at(fs, folder)}/{each.path}" for each in files]
    if is_s3(fs):  # a thousand in one request; one that is gone is no error there
        fs.rm(paths)
        return
    for each in paths:
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(each)


@functools.lru_cache(maxsize=64)
def _users(root: str, _pid: int) -> AbstractFileSystem:
    """The file system at `protocol://bucket` that others get; finding it takes longer than all else here."""
    return fsspec.url_to_fs(root)[0]


def _checksum(info: dict[str, Any]) -> str:
    stated = info.get("ETag") or info.get("etag") or info.get("md5Hash") or info.get("crc32c") or ""
    unquoted = str(stated).strip('"')
    return f"etag:{unquoted}" if unquoted else ""
