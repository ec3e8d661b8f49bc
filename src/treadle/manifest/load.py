"""From a path to a typed manifest: load with includes, merge params, fill placeholders, validate.

`read_manifest` does all of it and reports every problem at once; the single steps are for callers that need
the result of one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from treadle.manifest.include import gather
from treadle.manifest.interpolate import Interpolation
from treadle.manifest.lower import lower
from treadle.manifest.model import Manifest, ParamSection
from treadle.manifest.params import Params, resolve_params
from treadle.manifest.places import Section, find, plain
from treadle.manifest.problems import Problems
from treadle.manifest.spelling import Spelling
from treadle.manifest.validate import note_unknown_formats, validate

T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    """A manifest with its includes merged, in the present language, before params.

    Every value knows its place; `spelling` is how the file writes what has other names today.
    """

    tree: Section
    spelling: Spelling = field(default_factory=Spelling)

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of the values in a canonical form."""
        canonical = json.dumps(plain(self.tree), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def required(self) -> tuple[str, ...]:
        """The params that have no default, as they are declared."""
        declared = _declared(self, Problems())
        return tuple(name for name, each in declared.items() if each is not None and each.required)


def load_manifest_path(path: str | os.PathLike[str]) -> Document:
    """Read the YAML at `path` and merge its includes. Raises ManifestError with all that is wrong."""
    problems = Problems()
    document = _load(path, problems)
    problems.raise_any()
    return _certain(document)


def merged_params_from_manifest(document: Document, overlay: Mapping[str, object]) -> Params:
    """The params of the document: its defaults with `overlay` on top, typed; text in `overlay` is coerced.

    Raises ManifestError for unknown, missing and ill-typed params.
    """
    problems = Problems(document.spelling)
    params = _merge_params(document, overlay, problems)
    problems.raise_any()
    return params


def bind_manifest(document: Document, params: Params, variables: Mapping[str, str]) -> Manifest:
    """Fill the placeholders and validate. `variables` are named as in the manifest, such as `run.output`.

    Raises ManifestError with all that is wrong.
    """
    problems = Problems(document.spelling)
    manifest = _bind(document, params, variables, problems)
    problems.raise_any()
    return _certain(manifest)


def read_manifest(
    path: str | os.PathLike[str],
    overlay: Mapping[str, object],
    variables: Mapping[str, str],
    formats: Sequence[str] = (),
) -> Manifest:
    """Load, merge and bind the manifest at `path`; one ManifestError has the problems of all three.

    `formats` are the names of the formats, where they are known: a manifest that is refused anyway is then
    told of unknown ones too. (One that is not refused is checked against them by whoever opens them.)
    """
    problems = Problems()
    document = _load(path, problems)
    manifest = None
    if document is not None:
        params = _merge_params(document, overlay, problems)
        manifest = _bind(document, params, variables, problems)
        if manifest is None and formats:
            note_unknown_formats(document.tree, formats, problems)
    problems.raise_any()
    return _certain(manifest)


def _load(path: str | os.PathLike[str], problems: Problems) -> Document | None:
    """The document; None when the manifest is unreadable or of a version whose keys are not known."""
    tree = gather(os.fspath(path), problems)
    lowered = None if tree is None else lower(tree, problems)
    if lowered is None:
        return None
    problems.spelling = lowered[1]
    return Document(*lowered)


def _merge_params(document: Document, overlay: Mapping[str, object], problems: Problems) -> Params:
    return resolve_params(document.tree, _declared(document, problems), overlay, problems)


def _declared(document: Document, problems: Problems) -> dict[str, ParamSection | None]:
    """The declaration of each param, None for one that cannot be read."""
    section = find(document.tree, ("params",))
    names = section.node.entries if section and isinstance(section.node, Section) else {}
    return {name: validate(ParamSection, document.tree, ("params", name), problems) for name in names}


def _bind(
    document: Document, params: Params, variables: Mapping[str, str], problems: Problems
) -> Manifest | None:
    interpolation = Interpolation(params, variables, problems)
    tree = interpolation.fill(document.tree)
    manifest = validate(Manifest, tree, (), problems, ignore=interpolation.unknown)
    return None if manifest is None else manifest.keep_origin(tree, document.digest, document.spelling)


def _certain(result: T | None) -> T:
    if result is None:
        raise AssertionError("a manifest was refused without a reason")
    return result
