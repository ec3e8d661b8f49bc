"""Where the store lies: the folder under which every step has its own."""

from __future__ import annotations

import os
from pathlib import Path

from treadle.errors import ArgumentError
from treadle.fray.settings import find_settings

_ROOT_MARKS = ("treadle.toml", "pyproject.toml", ".git")


def find_prefix(prefix: str | os.PathLike[str] | None = None) -> str:
    """The absolute path of the store.

    `prefix` when given; else the environment's `TREADLE_PREFIX`; else `prefix` in the project's
    `treadle.toml` or `[tool.treadle]`, relative to that file; else `.treadle/store` in the
    project's folder.

    Raises:
        ArgumentError: it is not on the local file system, or not a path at all.
    """
    if prefix is not None:
        return _local(os.fspath(prefix), Path.cwd(), "prefix")
    if from_environment := os.environ.get("TREADLE_PREFIX"):
        return _local(from_environment, Path.cwd(), "TREADLE_PREFIX")
    settings = find_settings()
    if settings.file is not None and (configured := settings.table.get("prefix")) is not None:
        return _local(configured, settings.file.parent, f"{settings.file}: prefix")
    return str(_project_folder() / ".treadle" / "store")


def _local(prefix: object, start: Path, where: str) -> str:
    if not isinstance(prefix, str) or not prefix:
        raise ArgumentError(f"{where}: expected the path of a folder, got {prefix!r}")
    protocol, mark, rest = prefix.rpartition("://")
    if mark and protocol not in ("file", "local"):
        raise ArgumentError(
            f"{where}: expected a folder of the local file system, got {prefix!r}: "
            f"a store on {protocol}:// is not supported yet"
        )
    return os.path.normpath(start / Path(rest).expanduser())


def _project_folder() -> Path:
    here = Path.cwd()
    marked = (each for each in (here, *here.parents) if any((each / mark).exists() for mark in _ROOT_MARKS))
    return next(marked, here)
