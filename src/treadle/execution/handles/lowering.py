"""Lowering: from a handle, and all that it depends on, to StepSpecs in one store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from treadle.artifacts import find_prefix
from treadle.errors import ArgumentError
from treadle.execution.handles.handle import Handle
from treadle.execution.handles.versions import Versions
from treadle.execution.identity import identify
from treadle.execution.step_spec import StepSpec, lowered_spec


def lower(
    handle: Handle[Any], prefix: str | os.PathLike[str] | None = None, *, versions: Versions | None = None
) -> StepSpec:
    """The StepSpec of a handle, with those of all that it depends on, in the store `prefix`.

    Each handle is lowered once for a store (and once with the same `versions`), whoever asks, and depth
    is no limit. `versions` gives versions to the handles that have none of their own.

    Raises:
        ArgumentError: it is no handle, a step needs a version, or the data of an adopted one is not there.
        FingerprintMismatchError: a recipe is not the one that was expected.
        GraphError: a fixed version that rests on a dev one.
    """
    if not isinstance(handle, Handle):
        raise ArgumentError(f"lower: expected a handle (the call of a step makes one), got {handle!r}")
    known = _Known(find_prefix(prefix), versions)
    stack = [handle]
    while stack:
        top = stack[-1]
        if known.find(top) is None:
            waiting = [dep for dep in top.deps if known.find(dep) is None]
            if waiting:
                stack.extend(waiting)
                continue
            known.add(top)
        stack.pop()
    return known[handle]


class _Known:
    """The specs of a store: kept by the handles themselves, or by the versions they were lowered with."""

    def __init__(self, store: str, versions: Versions | None) -> None:
        self._store = store
        self._versions = versions
        self._apart = None if versions is None else versions.lowered(store)

    def find(self, handle: Handle[Any]) -> StepSpec | None:
        if self._apart is not None:
            return self._apart.get(handle)
        for spec in handle.lowered:
            if spec.output_path_prefix == self._store:
                return spec
        return None

    def __getitem__(self, handle: Handle[Any]) -> StepSpec:
        spec = self.find(handle)
        assert spec is not None, handle  # noqa: S101 - whoever asks has added it
        return spec

    def add(self, handle: Handle[Any]) -> None:
        deps = tuple([self[dep] for dep in handle.deps])
        if self._apart is not None and self._versions is not None:
            version = handle.version or self._versions.find(handle.name)
            self._apart[handle] = _spec(handle, deps, self._store, version, *_renamed(handle, deps))
        else:
            spec = _spec(handle, deps, self._store, handle.version, handle.config_text, handle.hash_id)
            object.__setattr__(handle, "lowered", (*handle.lowered, spec))


def _renamed(handle: Handle[Any], deps: tuple[StepSpec, ...]) -> tuple[str, str]:
    """The text and the fingerprint of the recipe, with the dependencies by the versions they have now."""
    text = handle.config_text
    for old, new in zip(handle.deps, deps, strict=True):
        text = text.replace(old.identity, new.identity)
    return text, identify(handle.name, text, [dep.identity for dep in deps])


def _spec(
    handle: Handle[Any], deps: tuple[StepSpec, ...], store: str, version: str | None, text: str, hash_id: str
) -> StepSpec:
    options = handle.options
    if options.needs_version and version is None:
        raise ArgumentError(
            f"step {handle.name!r}: an ArtifactStep needs a version: give it one (version='2026.02.03' or "
            "'dev'), or lower it with versions=Versions('dev')"
        )
    _check_source(handle.name, options.source)
    return lowered_spec(
        deps,
        text,
        hash_id,
        name=handle.name,
        fn=handle.recipe.bind(handle, deps, store, hash_id),
        output_path_prefix=store,
        override_output_path=options.override_output_path,
        resources=options.resources,
        retry=options.retry,
        timeout=options.timeout,
        version=version,
        expected_fingerprint=handle.expected_fingerprint,
        source=options.source,
    )


def _check_source(name: str, source: str | None) -> None:
    if source is not None and "://" not in source and not Path(source).exists():
        raise ArgumentError(
            f"step {name!r}: the adopted data is not there: {source}; put it there, or correct the source"
        )
