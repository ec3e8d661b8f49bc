"""ArtifactStep: a step in the explicit form, a config and the function that works it off.

    tokens = ArtifactStep(
        name="corpus/tokens", version="2026.02.03", artifact_type=Tokens, deps=[corpus], run=tokenize,
        build_config=lambda ctx: TokenizeConfig(
            source=ctx.artifact_path(corpus), target=ctx.output_path, vocabulary=32_000
        ),
    )

`build_config` is a pure function of the `StepContext`. What it writes out bears identity, and what it
takes from the context does not: the fingerprint is that of the config built with marks in place of
the paths and the runtime arguments, with a dependency's identity in place of where it lies. When
the step runs, the config is built again with what is so then, and `run(config)` does the work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from treadle.artifacts import Artifact
from treadle.artifacts.version import check_version
from treadle.errors import ArgumentError
from treadle.execution.handles.config_call import ConfigCall, ConfigRecipe
from treadle.execution.handles.context import StepContext
from treadle.execution.handles.handle import Handle, Options, listed_handles
from treadle.execution.handles.lowering import lower
from treadle.execution.handles.remote import Remote
from treadle.execution.handles.versions import Versions
from treadle.execution.retry import Retry
from treadle.execution.step_checks import check_fingerprint, check_name, check_runs
from treadle.fray import ResourceConfig

A_co = TypeVar("A_co", bound=Artifact, covariant=True)


class ArtifactStep(Handle[A_co]):
    """A step in the explicit form; a handle like those that calls of step functions make.

    `run(config)` does the work and returns an artifact of the type `artifact_type` (see `Artifact`), or
    None when there is no more to say than where its files are. `deps` are the steps whose paths
    `build_config` may ask for, `runtime_args` the values that bear no identity. `timeout` is in seconds.
    A step needs a version, its own or one of the run it is lowered for.

    Raises:
        ArgumentError: a name, a function, a type, a dependency or an option that is none, or a
            `build_config` that computes with what it takes from the context.
        IdentityError: the config has no canonical form.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        name: str,
        run: Callable[[Any], A_co | None],
        build_config: Callable[[StepContext], Any],
        version: str | None = None,
        artifact_type: type[A_co] = Artifact,  # type: ignore[assignment]
        deps: Iterable[Handle[Any]] = (),
        runtime_args: Mapping[str, Any] | None = None,
        expected_fingerprint: str | None = None,
        resources: ResourceConfig | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        override_path: str | None = None,
    ) -> None:
        check_name(name)
        where = f"step {name!r}"
        if isinstance(run, Remote):
            resources = resources or run.resources
            run = run.function
        _check_function(f"{where}: run", run)
        _check_function(f"{where}: build_config", build_config)
        check_artifact_type(where, artifact_type)
        if version is not None:
            check_version(version, f"{where}: version")
        check_fingerprint(where, expected_fingerprint)
        options = Options(resources, retry, timeout, override_path, needs_version=True).checked(where)
        listed = listed_handles(where, deps)
        recipe = ConfigRecipe(
            name, run, build_config, artifact_type, tuple(dep.identity for dep in listed),
            dict(runtime_args or {}),
        )  # fmt: skip
        super().__init__(name, recipe, listed, recipe.text(), version, expected_fingerprint, options)


def materialized_config(
    handle: ArtifactStep[Any],
    prefix: str | os.PathLike[str] | None = None,
    *,
    versions: Versions | None = None,
) -> Any:
    """The config that a run in the store `prefix` would work off, for whoever wants to look; nothing runs.

    Raises:
        ArgumentError: it is no `ArtifactStep`.
    """
    spec = lower(handle, prefix, versions=versions)
    if not isinstance(spec.fn, ConfigCall):
        raise ArgumentError(f"materialized_config: expected an ArtifactStep, got {handle!r}")
    places = {dep.output_path: dep.source or dep.output_path for dep in spec.deps}
    return spec.fn.config(spec.output_path, lambda source: places[source.output_path])


def check_artifact_type(where: str, artifact_type: object) -> None:
    """See that it is a type of artifacts.

    Raises:
        ArgumentError: it is not.
    """
    if not (isinstance(artifact_type, type) and issubclass(artifact_type, Artifact)):
        raise ArgumentError(
            f"{where}: artifact_type: expected Artifact, or a frozen dataclass that inherits from it, "
            f"got {artifact_type!r}"
        )


def _check_function(where: str, function: object) -> None:
    if not callable(function):
        raise ArgumentError(f"{where}: expected a function, got {function!r}")
    check_runs(where, function)
