"""The recipe of an explicit step, and the call that it becomes: build the config, run, check the artifact."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from treadle.artifacts import Artifact, type_name
from treadle.artifacts.drift import describe_changes, differences
from treadle.errors import ArgumentError, StepError, TreadleError
from treadle.execution.handles.arguments import Source, artifact_path
from treadle.execution.handles.captured import function_attributes
from treadle.execution.handles.context import StepContext
from treadle.execution.handles.handle import Handle, recipe_text
from treadle.execution.step_spec import StepSpec


class ConfigRecipe(NamedTuple):
    """`deps` are the identities by which `build_config` asks for the dependencies."""

    name: str
    run: Callable[[Any], Any]
    build_config: Callable[[StepContext], Any]
    artifact_type: type[Artifact]
    deps: tuple[str, ...]
    runtime_args: Mapping[str, Any]

    def text(self) -> str:
        """The canonical form of what bears identity."""
        where = f"step {self.name!r}"
        attributes = {
            **function_attributes(f"{where}: run", self.run),
            "artifact_type": type_name(self.artifact_type),
            "config": self._marked_config(),
        }
        return recipe_text(where, attributes)

    def _marked_config(self) -> Any:
        """The config with marks for all that is known only when the step runs."""
        marks = {key: Mark(f"<ctx.runtime_arg({key!r})>") for key in self.runtime_args}
        paths = {identity: partial(Mark, f"<{identity}>") for identity in self.deps}
        ctx = StepContext(
            Mark("<ctx.output_path>"),
            self.name,
            Mark("<ctx.fingerprint>"),
            Mark("<ctx.prefix>"),
            marks,
            paths,
        )
        try:
            return self.build_config(ctx)
        except TreadleError:
            raise
        except Exception as error:
            raise ArgumentError(
                f"step {self.name!r}: build_config failed when it was built with marks such as "
                f"'<ctx.output_path>' in place of what the context gives: {type(error).__name__}: {error}. "
                "It may put what the context gives into the config, and leaves computing with it to run"
            ) from error

    def bind(self, handle: Handle[Any], deps: Sequence[StepSpec], prefix: str, hash_id: str) -> ConfigCall:
        """See `Recipe`."""
        return ConfigCall(self, deps, handle.name, prefix, hash_id, handle.config_text)


class Mark(str):
    """What stands in an identity for a value that is known only when the step runs."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError(f"whether {self} is true is known only when the step runs")


class ConfigCall:
    """A lowered `ArtifactStep`, the `fn` of its step: builds the config, runs, checks the artifact.

    `text` is the canonical form of the recipe when the step was made.
    """

    __slots__ = ("deps", "hash_id", "name", "prefix", "recipe", "text")

    def __init__(
        self,
        recipe: ConfigRecipe,
        deps: Sequence[StepSpec | Source],
        name: str,
        prefix: str,
        hash_id: str,
        text: str,
    ) -> None:
        self.recipe = recipe
        self.deps = deps
        self.name = name
        self.prefix = prefix
        self.hash_id = hash_id
        self.text = text

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function itself, whose code it is that may change."""
        return self.recipe.run

    @property
    def artifact_type(self) -> type[Artifact]:
        """What the value of the step must be."""
        return self.recipe.artifact_type

    def config(self, path: str, find: Callable[[Source], str]) -> Any:
        """The config for a step that fills the folder `path`; `find` says where a dependency lies."""
        sources = map(Source.of, self.deps)
        paths = {key: partial(find, source) for key, source in zip(self.recipe.deps, sources, strict=True)}
        ctx = StepContext(path, self.name, self.hash_id, self.prefix, self.recipe.runtime_args, paths)
        return self.recipe.build_config(ctx)

    def __call__(self, path: str) -> Any:
        """Build the config and run; None stands for an artifact that has nothing but its path.

        Raises:
            StepError: `build_config` or a captured variable is not what it was when the step was made, or
                what `run` returned is of another type than was stated.
        """
        self._check_recipe()
        value = self.recipe.run(self.config(path, artifact_path))
        expected = self.artifact_type
        if value is None:
            return None if expected is Artifact else _plain(self.name, expected, path)
        if not isinstance(value, expected):
            raise StepError(
                f"step {self.name!r}: run: expected an artifact of type {expected.__qualname__}, "
                f"got {value!r} of type {type(value).__qualname__}"
            )
        return value

    def _check_recipe(self) -> None:
        if (now := self.recipe.text()) != self.text:
            changes = describe_changes(differences(json.loads(self.text), json.loads(now)))
            raise StepError(
                f"step {self.name!r}: build_config, or what run captures, gives another recipe now than when "
                f"the step was made ({changes}): take what changes from the context, or make the step later"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent elsewhere, it needs the places of its dependencies and not the graph above them."""
        sources = tuple(map(Source.of, self.deps))
        return type(self), (self.recipe, sources, self.name, self.prefix, self.hash_id, self.text)


def _plain(name: str, artifact_type: type[Artifact], path: str) -> Artifact:
    try:
        return artifact_type(path)
    except TypeError as error:
        raise StepError(
            f"step {name!r}: run: expected an artifact of type {artifact_type.__qualname__}, got None, "
            f"which leaves its fields unknown: {error}"
        ) from error
