"""The arguments of a call: frozen as they were given, and results put in the place of steps.

In a call that waits, each step among the arguments has given way to a `Place`: the number of the
dependency whose value will stand there. See `tree` for how it gets there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from treadle.artifacts import Artifact, open_store
from treadle.errors import ArtifactError
from treadle.execution.handles.captured import check_captured
from treadle.execution.handles.context import StepContext
from treadle.execution.handles.step_function import StepFunction
from treadle.execution.handles.tree import frozen
from treadle.execution.step_spec import StepSpec


class Place:
    """Where the value of dependency `number` goes."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


@functools.lru_cache(maxsize=1024)
def place(number: int) -> Place:
    """The `Place` of this number; most steps have few dependencies, and share these."""
    return Place(number)


class Source(NamedTuple):
    """Where the value of a step is recorded, and the type of artifact it must be, if of one."""

    prefix: str
    output_path: str
    artifact_type: type[Artifact] | None

    @classmethod
    def of(cls, step: StepSpec | Source) -> Source:
        """The source that a step is for its dependents."""
        if isinstance(step, Source):
            return step
        return cls(str(step.output_path_prefix), step.output_path, getattr(step.fn, "artifact_type", None))


class StepCall(NamedTuple):
    """One call of a step function: `arguments` has places, `text` is the recipe if variables are captured."""

    target: StepFunction
    arguments: Mapping[str, object]
    runtime: Mapping[str, object]
    text: str


class Call:
    """A lowered call, the `fn` of its step: puts results in their places, then calls."""

    __slots__ = ("deps", "hash_id", "name", "prefix", "recipe")

    def __init__(
        self, recipe: StepCall, deps: Sequence[StepSpec | Source], name: str, prefix: str, hash_id: str
    ) -> None:
        self.recipe = recipe
        self.deps = deps
        self.name = name
        self.prefix = prefix
        self.hash_id = hash_id

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function itself, whose code it is that may change."""
        return self.recipe.target.function

    def __call__(self, path: str) -> Any:
        """Load the results that the arguments need, and call the function."""
        target, arguments, runtime, text = self.recipe
        if text:
            check_captured(f"step {self.name!r}", target.function, text)
        load = functools.cache(lambda number: load_source(Source.of(self.deps[number])))
        given = {name: frozen(each, Place, lambda at: load(at.number)) for name, each in arguments.items()}
        context = StepContext(path, self.name, self.hash_id, self.prefix, runtime)
        return target.call({**given, **runtime}, context)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent elsewhere, it needs the places of its dependencies and not the graph above them."""
        sources = tuple(map(Source.of, self.deps))
        return type(self), (self.recipe, sources, self.name, self.prefix, self.hash_id)


def load_source(source: Source) -> Any:
    """The value of a step that is done.

    Raises:
        ArtifactError: it cannot be read, or it is no artifact of the type that the step has now.
    """
    value = open_store(source.prefix).load_value(source.output_path)
    expected = source.artifact_type
    if expected is not None and not isinstance(value, expected):
        raise ArtifactError(
            f"{source.output_path}: expected an artifact of type {expected.__qualname__}, "
            f"and what is kept there is of type {type(value).__qualname__}; build the step again by force"
        )
    return value


def artifact_path(source: Source) -> str:
    """Where the files of a step that is done are.

    Raises:
        ArtifactError: its record is gone, or cannot be read.
    """
    value = load_source(source)
    if isinstance(value, Artifact):
        return value.path
    store = open_store(source.prefix)
    record = store.record(source.output_path)
    return source.output_path if record is None else store.folder(source.output_path, record.head)
