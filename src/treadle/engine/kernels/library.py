"""The compiled library: made once for this machine, kept in a folder, checked before it is loaded."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from treadle.engine.kernels.compiler import Compiler, find_compiler
from treadle.errors import ArgumentError, EngineError
from treadle.settings import find_settings

_LOG = logging.getLogger(__name__)
_DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Where compiled libraries are kept.

    `TREADLE_KERNEL_CACHE` of the environment, else `kernel_cache` in the project's settings (relative to
    their file), else `treadle/kernels` in the user's cache folder.

    Raises:
        ArgumentError: the setting is no text.
    """
    if named := os.environ.get("TREADLE_KERNEL_CACHE"):
        return Path(named).absolute()
    settings = find_settings()
    if settings.file is not None and (said := settings.table.get("kernel_cache")) is not None:
        if not isinstance(said, str) or not said:
            raise ArgumentError(f"{settings.file}: kernel_cache: expected a path, got {said!r}")
        return settings.file.parent / said
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "treadle" / "kernels"


def load_library(folder: Path) -> ctypes.CDLL:
    """The library from `folder`, compiled if it is not there or damaged.

    Raises:
        EngineError: there is no compiler, it fails, or the folder cannot be written to.
    """
    compiler = find_compiler()
    path = folder / f"llama-{compiler.key()}.so"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not _is_whole(path):
            with _locked(path.with_suffix(".lock")):
                _make(compiler, path)
        return _declared(ctypes.CDLL(str(path)))
    except OSError as error:
        raise EngineError(f"compiled kernels cannot be kept in {folder}: {error}") from error


@cache
def shared_library() -> ctypes.CDLL:
    """The library of this process; see `load_library`."""
    return load_library(cache_folder())


def _make(compiler: Compiler, path: Path) -> None:
    if _is_whole(path):  # another process made it while this one waited
        return
    # One name: what a killed process left is overwritten, and nobody else writes while the lock is held.
    partial = path.with_suffix(".partial")
    _LOG.info("compiling the engine's kernels for this processor, once: that takes some seconds")
    compiler.compile(partial)
    partial.write_bytes((body := partial.read_bytes()) + hashlib.sha256(body).digest())
    partial.replace(path)


def _is_whole(path: Path) -> bool:
    """Whether the file ends in the digest of what stands before; loading half a library would be a crash."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(found[:-_DIGEST]).digest() == found[-_DIGEST:]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file, waiting for who has it; the system frees it when a process dies."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    library.treadle_room.argtypes = [pointer, number]
    library.treadle_room.restype = ctypes.c_int64
    library.treadle_forward.argtypes = [number, pointer, pointer, pointer, pointer, pointer, number]
    library.treadle_forward.restype = None
    return library
