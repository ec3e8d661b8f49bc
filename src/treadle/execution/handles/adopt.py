"""adopt: data that exists already, as a step that is never computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, overload

from treadle.artifacts import Artifact, type_name
from treadle.artifacts.version import check_version
from treadle.errors import ArgumentError
from treadle.execution.handles.artifact_step import check_artifact_type
from treadle.execution.handles.handle import Handle, Options, recipe_text
from treadle.execution.step_checks import check_name
from treadle.execution.step_spec import StepSpec

A = TypeVar("A", bound=Artifact)


@overload
def adopt(
    name: str,
    version: str,
    source: str | os.PathLike[str],
    artifact_type: type[A],
    config: Mapping[str, Any] | None = None,
) -> Handle[A]: ...
@overload
def adopt(
    name: str, version: str, source: str | os.PathLike[str], *, config: Mapping[str, Any] | None = None
) -> Handle[Artifact]: ...
def adopt(
    name: str,
    version: str,
    source: str | os.PathLike[str],
    artifact_type: type[Artifact] = Artifact,
    config: Mapping[str, Any] | None = None,
) -> Handle[Any]:
    """A step for the data at `source`, a path or a URL; what depends on it gets an artifact of that path.

    `config` is what is known of the data. It is the recipe, of which `source` is no part: the same data
    may lie elsewhere on another machine. Fields of `artifact_type` beside `path` are taken from it.

    Raises:
        ArgumentError: a name, a version, a type or a source that is none, or a field that is not known.
        IdentityError: `config` has no canonical form.
    """
    check_name(name)
    where = f"adopt {name!r}"
    check_version(version, f"{where}: version")
    check_artifact_type(where, artifact_type)
    config = dict(config or {})
    attributes: dict[str, object] = {"artifact_type": type_name(artifact_type), "config": config}
    place = _located(where, source)
    recipe = Adopted(_artifact(where, artifact_type, place, config))
    return Handle(name, recipe, (), recipe_text(where, attributes), version, None, Options(source=place))


@dataclass(frozen=True, slots=True)
class Adopted:
    """The recipe and the `fn` of an adopted step: it gives the artifact and does nothing."""

    artifact: Artifact

    @property
    def artifact_type(self) -> type[Artifact]:
        """What the value of the step must be."""
        return type(self.artifact)

    def bind(
        self,
        handle: Handle[Any],  # noqa: ARG002 - as every recipe
        deps: Sequence[StepSpec],  # noqa: ARG002
        prefix: str,  # noqa: ARG002
        hash_id: str,  # noqa: ARG002
    ) -> Callable[[str], object]:
        """See `Recipe`."""
        return self

    def __call__(self, path: str) -> Artifact:  # noqa: ARG002 - nothing is written
        """The artifact."""
        return self.artifact


def _located(where: str, source: object) -> str:
    place = os.fspath(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(place, str) or not place:
        raise ArgumentError(f"{where}: source: expected a path or a URL, got {source!r}")
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))  # noqa: PTH100, PTH111


def _artifact(where: str, artifact_type: type[A], path: str, config: Mapping[str, Any]) -> A:
    others = [each for each in fields(artifact_type) if each.init and each.name != "path"]
    needed = [each.name for each in others if each.default is each.default_factory is MISSING]
    if missing := [name for name in needed if name not in config]:
        raise ArgumentError(
            f"{where}: config: expected the fields of {artifact_type.__qualname__}, got none of the name "
            f"{', '.join(missing)}: add them"
        )
    return artifact_type(path, **{each.name: config[each.name] for each in others if each.name in config})
