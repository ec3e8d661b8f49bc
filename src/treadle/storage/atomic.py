"""Files that appear whole or not at all on the local file system, and names for what is not finished yet.

A file being written is beside its target, under a hidden name, `.<name>.staging-<token>`. The token is
new for each writer, so a writer that was paused while another cleared and took over finds its staging gone
instead of publishing the other's.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

import fsspec
import pyarrow as pa

from treadle.errors import ArgumentError, RunError

_LOCAL = ("file", "local")
_ADVICE = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.EFBIG: "see why a file may not grow so large there",
    errno.EROFS: "choose a place that can be written",
    errno.EACCES: "see that this user may write there",
    errno.EPERM: "see that this user may write there",
}


def write_atomically(path: str | Path, content: bytes) -> None:
    """Put `content` at `path`, a local path or any fsspec URL, replacing what is there.

    A reader sees the old or the new file, also after a crash. Missing parent folders are made. Raises OSError
    with the path; then nothing has changed.
    """
    if is_remote(path):
        system, place = fsspec.core.url_to_fs(str(path))
        system.pipe_file(place, content)  # an object appears whole
        return
    target = local_path(str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = staging_path(target)
    try:
        with staged.open("xb") as file:
            file.write(content)
            finish_file(file)
        staged.replace(target)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def staging_path(target: Path) -> Path:
    """A fresh hidden name beside `target`; nothing is made."""
    return target.with_name(f".{target.name}.staging-{secrets.token_hex(4)}")


def remove(path: Path) -> None:
    """Remove a file or a folder with what is in it; nothing when it is not there."""
    # Not pathlib, which raises for a path that cannot exist: such an error would only bury the first one.
    if not os.path.lexists(path):
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def no_empty_folders(places: Iterable[str]) -> Iterator[None]:
    """Have the block leave no empty folder among `places`, and those above them, that were not there before.

    A place of another file system than that of this machine is passed over.
    """
    local = [local_path(each) for each in places if not is_remote(each)]
    new = {each for place in local for each in (place, *place.parents) if not os.path.lexists(each)}
    try:
        yield
    finally:
        for each in sorted(new, reverse=True):  # what is inside comes first
            with suppress(OSError, ValueError):  # it is not empty, not there, or cannot be
                each.rmdir()


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def local_path(path: str) -> Path:
    """The absolute local path of an fsspec URL, without `..`. ArgumentError for a scheme but `file`."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return _plain(path)
    if scheme not in _LOCAL:
        raise ArgumentError(f"cannot write to {path}: expected a local path, got the scheme {scheme!r}")
    return _plain(rest)


def is_remote(path: str | Path) -> bool:
    """Whether that is a URL of another file system than that of this machine."""
    scheme, separator, _ = str(path).partition("://")
    return bool(separator) and scheme not in _LOCAL


def _plain(path: str) -> Path:
    # With `..` in them, two spellings of one path would pass for two outputs.
    return Path(os.path.abspath(path))  # noqa: PTH100 - pathlib keeps the `..`, or follows links


@contextmanager
def write_failure(path: Path) -> Iterator[None]:
    """Turn what a failing write raises into a RunError that names the file."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunError(f"cannot write {path}: {error}{_what_to_do(error)}") from error


def _what_to_do(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return f"; {_ADVICE[number]}, and run again" if number in _ADVICE else ""


def finish_file(file: BufferedWriter) -> None:
    """Flush, sync to disk, close."""
    file.flush()
    os.fsync(file.fileno())
    file.close()


def abandon_file(file: BufferedWriter) -> None:
    """Close the handle without writing what is buffered, which could fail on a full disk."""
    file.raw.close()
