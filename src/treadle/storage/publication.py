"""What a publication does to the manifest of an output, which may be there before, and how that is undone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from treadle.errors import ArtifactError
from treadle.storage.output_manifest import OutputFile, OutputManifest, parse_output_manifest
from treadle.storage.schema import widen
from treadle.storage.type_text import parse_type


@dataclass(frozen=True)
class Publication:
    """A manifest in the place of another, and the files that are new in it.

    `before` is the content of the file that was there, None when there was no output.
    """

    before: bytes | None
    manifest: OutputManifest
    added: tuple[OutputFile, ...]

    @property
    def replaced(self) -> tuple[OutputFile, ...]:
        """The files of before that count no longer."""
        if self.before is None:
            return ()
        kept = {each.name for each in self.manifest.files}
        old = parse_output_manifest(self.before, self.manifest.path).files
        return tuple(each for each in old if each.name not in kept)

    def without(self, present: bytes) -> bytes | None:
        """The manifest `present` without this publication; None when no output remains.

        What others have appended since stays.
        """
        if present == self.manifest.to_json():
            return self.before
        now = parse_output_manifest(present, self.manifest.path)
        mine = {each.name for each in self.added}
        if not mine & {each.name for each in now.files}:
            return present
        others = tuple(each for each in now.files if each.name not in mine)
        return with_files(now, (*self.replaced, *others)).to_json()


def planned(before: bytes | None, manifest: OutputManifest, folder: str, mode: str) -> Publication:
    """What is to be published: the files of `manifest` in a folder of the output, with the others or instead.

    Raises:
        ArtifactError: mode append, and the two do not go together; see `joined`.
    """
    moved = [replace(each, name=f"{folder}/{each.name}") for each in manifest.files]
    new = with_files(manifest, moved)
    if before is None or mode != "append":
        return Publication(before, new, new.files)
    return Publication(before, joined(parse_output_manifest(before, manifest.path), new), new.files)


def folders(files: Iterable[OutputFile]) -> set[str]:
    """The names, inside the output, of the folders that files are in, and of the files that are in none."""
    return {each.name.partition("/")[0] for each in files}


def with_files(manifest: OutputManifest, files: Iterable[OutputFile]) -> OutputManifest:
    """The manifest with other files."""
    listed = tuple(files)
    return replace(manifest, files=listed, rows=sum(each.rows for each in listed))


def joined(before: OutputManifest, new: OutputManifest) -> OutputManifest:
    """The files of both, the old ones first.

    Raises:
        ArtifactError: they are of two formats, or a column has two types that do not widen to one.
    """
    check_backend(before, new.output, new.backend)
    columns = dict(before.columns)
    for name, found in new.columns.items():
        columns[name] = _widened(before, new.output, name, columns.get(name, found), found)
    return replace(with_files(new, (*before.files, *new.files)), columns=columns)


def check_backend(before: OutputManifest, output: str, backend: str) -> None:
    """Raises ArtifactError when files of another format would be appended."""
    if before.backend != backend:
        raise ArtifactError(
            f"output {output!r}: {before.path}: expected {before.backend} files to append, as it holds, "
            f"got {backend}; write that format, or another path"
        )


def lost_race(output: str, path: str) -> ArtifactError:
    """What is raised by whoever finds an output changed that it was going to replace."""
    return ArtifactError(
        f"output {output!r}: {path}: another run has published there since this one began, and its rows "
        "would be lost: expected the output as it was then; nothing was changed: see which of the two should "
        "stand, then run again"
    )


def _widened(before: OutputManifest, output: str, column: str, known: str, found: str) -> str:
    if known == found:
        return known
    first, second = parse_type(known), parse_type(found)
    try:
        if first is None or second is None:
            raise pa.ArrowTypeError("the types differ")
        return str(widen(pa.schema([(column, first)]), pa.schema([(column, second)])).field(column).type)
    except (pa.ArrowException, ValueError) as error:
        raise ArtifactError(
            f"output {output!r}: {before.path}: column {column!r}: expected {known}, as in the rows that are "
            f"there, got {found} in those to append ({error}); give it that type, or write to another path"
        ) from error
