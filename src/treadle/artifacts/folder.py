"""The files of a folder on a local disk: found, hashed, and made safe."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from treadle.artifacts.record import FileEntry


def is_folder(path: Path) -> bool:
    """Whether it is a folder itself, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def walk(folder: str, below: str = "", links: list[str] | None = None) -> Iterator[str]:
    """The files below a folder, by their paths relative to it; no link to a folder is followed.

    All links are added to `links`, by their whole paths.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            if links is not None and entry.is_symlink():
                links.append(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from walk(entry.path, f"{path}/", links)
            elif entry.is_file():
                yield path


def make_relative(folder: str, link: str) -> None:
    """Rewrite a link into the folder so that it leads there also when the folder has got another name."""
    target = Path(link).readlink()
    if target.is_relative_to(folder):
        Path(link).unlink()
        Path(link).symlink_to(os.path.relpath(target, Path(link).parent))


def synced_entry(folder: str, path: str) -> FileEntry:
    """The entry of a file, which is safe on the disk from now on."""
    with Path(folder, path).open("rb") as file:
        found = checksum(file)
        os.fsync(file.fileno())  # the record says it is there, so it must be, also after a power cut
        return FileEntry(path, os.fstat(file.fileno()).st_size, found)


def checksum(file: BufferedReader) -> str:
    """The checksum of what is in an open file, as a `FileEntry` has it."""
    return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
