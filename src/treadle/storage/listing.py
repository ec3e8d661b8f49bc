"""The files that a dataset consists of, with the version of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem

from treadle.errors import ArgumentError, ArtifactError, RunError, TreadleError
from treadle.storage.dataset import Dataset
from treadle.storage.http_client import is_http
from treadle.storage.http_file import look_at
from treadle.storage.output_manifest import MANIFEST_NAME, OutputManifest, read_output_manifest
from treadle.storage.passing import is_of_storage
from treadle.storage.shown import shown_url

_VERSIONS = ("ETag", "etag", "LastModified", "last-modified", "updated", "mtime")


@dataclass(frozen=True)
class SourceFile:
    """A file to read: its path or URL, its bytes, and what changes with its content ("": nobody can tell).

    `parts`: whether a part of it can be read without reading what comes before.
    """

    source: str
    bytes: int
    version: str
    parts: bool = True


def list_files(dataset: Dataset, suffixes: tuple[str, ...]) -> list[SourceFile]:
    """The files of a dataset sorted by path; those of a committed output as its manifest has them.

    A folder gives its files with these suffixes whose names begin with neither "." nor "_".

    Raises:
        ArgumentError: nothing matches the path, it cannot be read, an output there is not yet committed or
            has another format.
        ArtifactError: a committed output does not have exactly the files, by name and size, of its manifest.
        RunError: the storage cannot be reached, or refuses.
    """
    try:
        return [_by_http(dataset)] if is_http(dataset.path) else _by_listing(dataset, suffixes)
    except Exception as error:  # clients of storages raise what they like
        if isinstance(error, TreadleError) or not is_of_storage(error):
            raise
        raise RunError(f"cannot read {shown_url(dataset.path)}: {_said(error)}, then run again") from error


def _said(error: Exception) -> str:
    """What is wrong with a storage, and what to do."""
    kind = type(error).__name__
    if "Credential" in kind:  # of an optional package, which is not imported to ask
        return (
            f"{kind}: {error}; give them, for S3 as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or as a "
            "profile; a bucket that anybody may read wants FSSPEC_S3_ANON=true"
        )
    told = error.strerror if isinstance(error, OSError) and error.strerror else f"{kind}: {error}"
    return f"{told}; see that the address is right, that it can be reached and that this user may read there"


def _by_listing(dataset: Dataset, suffixes: tuple[str, ...]) -> list[SourceFile]:
    system, path = _located(dataset)
    infos = _committed(dataset, system, path, suffixes)
    if infos is None:
        infos = _found(dataset, system, path, suffixes)
    return [_source_file(dataset, system, each) for each in infos]


def _by_http(dataset: Dataset) -> SourceFile:
    try:
        info = look_at(dataset.path)
    except FileNotFoundError as error:
        raise ArgumentError(f"no {dataset.backend} file at {dataset.path}: {error.strerror}") from error
    return SourceFile(dataset.path, info.size or 0, _http_version(info.version, info.size), info.ranges)


def _http_version(version: str, size: int | None) -> str:
    return version or ("" if size is None else "only its length is known")


def _source_file(dataset: Dataset, system: AbstractFileSystem, info: Mapping[str, Any]) -> SourceFile:
    path = info["name"]
    source = system.unstrip_protocol(path) if "://" in dataset.path else path
    return SourceFile(source, info["size"], _version(system, info))


def _version(system: AbstractFileSystem, info: Mapping[str, Any]) -> str:
    """What changes with the content of a file, as far as its file system tells."""
    if isinstance(system, LocalFileSystem):
        return str(os.stat(info["name"]).st_mtime_ns)  # noqa: PTH116 - a name of fsspec
    known = (info[key] for key in _VERSIONS if info.get(key))
    return str(next(known, info.get("created", "")))


def _located(dataset: Dataset) -> tuple[AbstractFileSystem, str]:
    """The file system and the path on it. Raises ArgumentError for one that cannot be used here."""
    try:
        system, path = fsspec.core.url_to_fs(dataset.path)
    except (ImportError, ValueError) as error:  # a package it needs is missing, or nobody knows the scheme
        raise ArgumentError(f"cannot read {dataset.path}: {error}") from error
    system.invalidate_cache()  # listings are kept, and others write
    return system, path


def _found(
    dataset: Dataset, system: AbstractFileSystem, path: str, suffixes: tuple[str, ...]
) -> list[Mapping[str, Any]]:
    """The files of a dataset that nobody committed. Raises ArgumentError when there is none."""
    if system.isdir(path):
        listing = system.ls(path, detail=True)
        files = [each for each in listing if _is_data(each, suffixes)]
        if not files:
            _refuse_uncommitted(dataset, listing)
    else:
        # An existing name is that file, even if it contains pattern characters.
        listing = [system.info(path)] if system.exists(path) else system.glob(path, detail=True).values()
        files = [each for each in listing if _is_file(each)]
    if not files:
        wanted = f"a file, a glob, or a folder with files named *{', *'.join(suffixes)}"
        raise ArgumentError(f"no {dataset.backend} file at {dataset.path}; expected {wanted}")
    return sorted(files, key=lambda each: str(each["name"]))


def _refuse_uncommitted(dataset: Dataset, listing: list[Mapping[str, Any]]) -> None:
    names = [_file_name(each["name"].rstrip("/")) for each in listing]
    if any(name.startswith("data-") for name in names):
        raise ArgumentError(
            f"{dataset.path}: no committed output yet: there is no {MANIFEST_NAME}, and what lies there "
            "is of a run that has not ended; wait for it, or run it again"
        )


def _is_data(info: Mapping[str, Any], suffixes: tuple[str, ...]) -> bool:
    name = _file_name(info["name"])
    return name.endswith(suffixes) and not name.startswith((".", "_")) and _is_file(info)


def _is_file(info: Mapping[str, Any]) -> bool:
    if info["type"] == "directory":
        return False
    if info["type"] != "file":
        # Skipping a link whose file is gone would lose its rows silently.
        raise ArgumentError(f"{info['name']}: expected a file, found a link to nothing, a pipe or a device")
    return True


def _committed(
    dataset: Dataset, system: AbstractFileSystem, path: str, suffixes: tuple[str, ...]
) -> list[Mapping[str, Any]] | None:
    """The files of a committed output, in the order of its manifest; None when it is none."""
    if not (system.isdir(path) and system.exists(f"{path}/{MANIFEST_NAME}")):
        return None
    manifest = read_output_manifest(dataset.path)
    if manifest.backend != dataset.backend:
        raise ArgumentError(f"{dataset.path}: expected {dataset.backend} files, it holds {manifest.backend}")
    found = dict(_present(manifest, system, path, suffixes))
    _compare(dataset, {each.name: each.bytes for each in manifest.files}, found)
    return [found[each.name] for each in manifest.files]


def _present(
    manifest: OutputManifest, system: AbstractFileSystem, path: str, suffixes: tuple[str, ...]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The data files of an output by their names in it.

    Files of a later publication lie in folders of their own, which are looked into only as the manifest says.
    """
    names = {each.name for each in manifest.files}
    folders = {name.rpartition("/")[0] for name in names}
    for folder in sorted({"", *folders}):
        for each in _listed(system, f"{path}/{folder}".rstrip("/")):
            name = f"{folder}/{_file_name(each['name'])}".removeprefix("/")
            # Part files that an overwrite has replaced are removed only after it.
            replaced = any(folders) and name.startswith("part-") and name not in names
            if not replaced and _is_data(each, suffixes):
                yield name, each


def _listed(system: AbstractFileSystem, folder: str) -> list[Mapping[str, Any]]:
    try:
        return list(system.ls(folder, detail=True))
    except FileNotFoundError:
        return []


def _compare(dataset: Dataset, expected: Mapping[str, int], infos: Mapping[str, Mapping[str, Any]]) -> None:
    found = {name: info["size"] for name, info in infos.items()}
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            raise ArtifactError(
                f"{dataset.path}: {name}: expected {_in_bytes(expected.get(name))} by {MANIFEST_NAME}, "
                f"found {_in_bytes(found.get(name))}; remove the output and run again the step that makes it"
            )


def _in_bytes(size: int | None) -> str:
    return "no file" if size is None else f"{size:,} bytes"


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
