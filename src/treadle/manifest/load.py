"""From a path to a typed manifest: load with includes, merge params, fill placeholders, validate.

`read_manifest` does all of it and reports every problem at once; the single steps are for callers that need
the result of one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from treadle.manifest.include import gather
from treadle.manifest.interpolate import Interpolation
from treadle.manifest.model import KNOWN_VERSIONS, Manifest, ParamSection
from treadle.manifest.params import Params, resolve_params
from treadle.manifest.places import Leaf, Node, Section, find, plain
from treadle.manifest.problems import Problems, describe
from treadle.manifest.validate import validate

T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    """A manifest with its includes merged, before params; every value knows its place."""

    tree: Section

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of the values in a canonical form."""
        canonical = json.dumps(plain(self.tree), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


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
    problems = Problems()
    params = _merge_params(document, overlay, problems)
    problems.raise_any()
    return params


def bind_manifest(document: Document, params: Params, variables: Mapping[str, str]) -> Manifest:
    """Fill the placeholders and validate. `variables` are named as in the manifest, such as `run.output`.

    Raises ManifestError with all that is wrong.
    """
    problems = Problems()
    manifest = _bind(document, params, variables, problems)
    problems.raise_any()
    return _certain(manifest)


def read_manifest(
    path: str | os.PathLike[str], overlay: Mapping[str, object], variables: Mapping[str, str]
) -> Manifest:
    """Load, merge and bind the manifest at `path`; one ManifestError has the problems of all three."""
    problems = Problems()
    document = _load(path, problems)
    manifest = None
    if document is not None:
        params = _merge_params(document, overlay, problems)
        manifest = _bind(document, params, variables, problems)
    problems.raise_any()
    return _certain(manifest)


def _load(path: str | os.PathLike[str], problems: Problems) -> Document | None:
    """The document; None when the manifest is unreadable or of a version whose keys are not known."""
    tree = gather(os.fspath(path), problems)
    if tree is None or not _is_known_version(tree, problems):
        return None
    return Document(tree)


def _is_known_version(tree: Section, problems: Problems) -> bool:
    entry = find(tree, ("drtml_version",))
    if entry is None or _is_version(entry.node):
        return True
    expected = f"a known version of the language ({', '.join(map(str, KNOWN_VERSIONS))})"
    problems.add(entry.node.place, ("drtml_version",), expected, describe(entry.node))
    return False


def _is_version(node: Node) -> bool:
    # The type is asked for because 4.0 == 4.
    return isinstance(node, Leaf) and type(node.value) is int and node.value in KNOWN_VERSIONS


def _merge_params(document: Document, overlay: Mapping[str, object], problems: Problems) -> Params:
    section = find(document.tree, ("params",))
    names = section.node.entries if section and isinstance(section.node, Section) else {}
    declared = {name: validate(ParamSection, document.tree, ("params", name), problems) for name in names}
    return resolve_params(document.tree, declared, overlay, problems)


def _bind(
    document: Document, params: Params, variables: Mapping[str, str], problems: Problems
) -> Manifest | None:
    interpolation = Interpolation(params, variables, problems)
    tree = interpolation.fill(document.tree)
    manifest = validate(Manifest, tree, (), problems, ignore=interpolation.unknown)
    return None if manifest is None else manifest.keep_origin(tree, document.digest)


def _certain(result: T | None) -> T:
    if result is None:
        raise AssertionError("a manifest was refused without a reason")
    return result
