"""Where the store lies: the folder, or the fsspec URL, under which every step has its own place."""

from __future__ import annotations

import os
from pathlib import Path

from treadle.errors import ArgumentError
from treadle.settings import find_settings

_DEFAULT = "/.treadle/store"
_ROOT_MARKS = ("treadle.toml", "pyproject.toml", ".git")


def find_prefix(prefix: str | os.PathLike[str] | None = None) -> str:
    """The store: an absolute path, or a URL without a slash at its end.

    `prefix` when given; else the environment's `TREADLE_PREFIX`; else `prefix` in the project's
    `treadle.toml` or `[tool.treadle]`, relative to that file; else `.treadle/store` in the
    project's folder.

    Raises:
        ArgumentError: it is no path, or a URL of a kind that nobody knows.
    """
    if prefix is not None:
        given = os.fspath(prefix) if isinstance(prefix, os.PathLike) else prefix
        return _located(given, Path.cwd(), "prefix")
    if from_environment := os.environ.get("TREADLE_PREFIX"):
        return _located(from_environment, Path.cwd(), "TREADLE_PREFIX")
    settings = find_settings()
    if settings.file is not None and (configured := settings.table.get("prefix")) is not None:
        return _located(configured, settings.file.parent, f"{settings.file}: prefix")
    return f"{_project_folder()}{_DEFAULT}"


def is_url(path: str) -> bool:
    """Whether it is a URL, and so not on the local file system."""
    return "://" in path


def join(folder: str, *parts: str) -> str:
    """A path or URL below `folder`; an absolute part replaces what is before it, as in `os.path.join`."""
    for part in parts:
        absolute = is_url(part) or part.startswith("/")
        folder = part if absolute else (part and f"{folder.removesuffix('/') or folder}/{part}") or folder
    return folder


def hide_from_git(prefix: str) -> None:
    """Let git overlook the store that a project has by default; it is made if it is not there."""
    if not is_url(prefix) and prefix.endswith(_DEFAULT):
        note = Path(prefix).parent / ".gitignore"
        if not note.exists():
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text("# written by treadle\n*\n")


def _located(prefix: object, start: Path, where: str) -> str:
    if not isinstance(prefix, str) or not prefix or "\0" in prefix:
        raise ArgumentError(f"{where}: expected the path of a folder, got {prefix!r}")
    if prefix.startswith("/") and os.path.normpath(prefix) == prefix:  # as most are, of thousands of steps
        return prefix
    protocol, mark, rest = prefix.partition("://")
    if mark and protocol not in ("file", "local"):
        return _checked_url(protocol, rest, where)
    return os.path.normpath(start / Path(rest if mark else prefix).expanduser())


def _checked_url(protocol: str, rest: str, where: str) -> str:
    # Here: fsspec takes a tenth of a second to load, which a local store need not wait for.
    from fsspec.registry import available_protocols

    known = [each for each in available_protocols() if each != "local"]
    if protocol not in known:
        raise ArgumentError(
            f"{where}: expected a path, or a URL that fsspec knows, got {protocol}://{rest} "
            f"(known: {', '.join(sorted(known))})"
        )
    if ".." in rest.split("/"):
        raise ArgumentError(f"{where}: expected a URL without '..', got {protocol}://{rest}")
    return f"{protocol}://{rest.strip('/') if protocol == 'memory' else rest.rstrip('/')}"


def _project_folder() -> Path:
    here = Path.cwd()
    marked = (each for each in (here, *here.parents) if any((each / mark).exists() for mark in _ROOT_MARKS))
    return next(marked, here)
