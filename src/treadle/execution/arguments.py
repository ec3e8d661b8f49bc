"""The arguments of a step function: which bear identity, and how they reach the function.

Arguments are trees of lists, tuples, sets, dicts and dataclasses; `rebuild` copies such a tree and
replaces its leaves of one type. So a call is frozen as it was made, handles give way to the
identities of steps, and the places of results to the results.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import PurePath
from types import CellType
from typing import Annotated, Any, TypeAlias, TypeVar, get_type_hints

from treadle.artifacts import fingerprint, type_name
from treadle.errors import ArgumentError, IdentityError, StepError
from treadle.execution.results import load_value

T = TypeVar("T")


class NoIdentity:
    """Marks an annotation whose argument is not part of the identity."""


Runtime: TypeAlias = Annotated[T, NoIdentity]
"""`Runtime[int]` is an int that does not change the result, such as a number of threads."""


@dataclass(frozen=True)
class StepContext:
    """Where a step runs: its output folder, its name, its identity in hex, and the store."""

    output_path: str
    name: str
    fingerprint: str
    prefix: str


@dataclass(frozen=True)
class Dependency:
    """A dependency among the arguments, as it stands in the identity."""

    hash_id: str


@dataclass(frozen=True)
class Source:
    """A dependency among the arguments, as it stands in the call: where its value is recorded."""

    output_path: str


@dataclass(frozen=True, eq=False)
class StepFunction:
    """The function of a step, and which of its parameters bear no identity or take the context."""

    function: Callable[..., Any]
    signature: inspect.Signature
    runtime: frozenset[str]
    context: frozenset[str]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> StepFunction:
        """Read the kinds off the annotations."""
        signature = inspect.signature(function)
        kinds = {name: _kind(annotation) for name, annotation in _annotations(function).items()}
        chosen = {
            kind: frozenset(name for name in signature.parameters if kinds.get(name) is kind)
            for kind in (NoIdentity, StepContext)
        }
        return cls(function, signature, chosen[NoIdentity], chosen[StepContext])

    @property
    def function_name(self) -> str:
        """`module.function`, the same whether the module is run or imported."""
        return type_name(self.function)

    def bind(self, where: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, defaults filled in, without the context.

        Raises:
            ArgumentError: they do not fit; the message begins with `where`.
        """
        parameters = [each for name, each in self.signature.parameters.items() if name not in self.context]
        try:
            bound = self.signature.replace(parameters=parameters).bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{where}: {error}; expected {self.signature}") from error
        bound.apply_defaults()
        return bound.arguments

    def captured(self, where: str) -> dict[str, Any]:
        """The variables that the function takes from the functions around it.

        Raises:
            IdentityError: one has no value yet; the message begins with `where`.
        """
        cells = getattr(self.function, "__closure__", None) or ()
        names = self.function.__code__.co_freevars if cells else ()
        return {name: _content(f"{where}: {name}", cell) for name, cell in zip(names, cells, strict=True)}

    def call(self, arguments: Mapping[str, Any], context: StepContext) -> Any:
        """Call the function with its arguments and, where it asks for it, the context."""
        bound = self.signature.bind_partial()
        bound.arguments.update(arguments, **dict.fromkeys(self.context, context))
        return self.function(*bound.args, **bound.kwargs)


@dataclass(frozen=True, eq=False)
class Call:
    """A lowered call, the `fn` of its step: puts results in the place of sources, then calls."""

    target: StepFunction
    arguments: Mapping[str, object]
    runtime: Mapping[str, object]
    cells: Mapping[str, object]
    name: str
    prefix: str

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function itself, whose code it is that may change."""
        return self.target.function

    def __call__(self, output_path: str) -> Any:
        """Load the results that the arguments name, and call the function."""
        self._check_captured()
        load = functools.cache(lambda source: load_value(source.output_path))
        arguments = rebuild(self.arguments, Source, load)
        identity = PurePath(output_path).name  # a lowered step lies in {store}/{name}/{fingerprint}
        context = StepContext(output_path, self.name, identity, self.prefix)
        return self.target.call({**arguments, **self.runtime}, context)

    def _check_captured(self) -> None:
        """A step in a loop sees the loop's variable as it is later, and its identity has it as it was."""
        where = f"step {self.name!r}"
        for name, now in self.target.captured(where).items():
            then = self.cells[name]
            if now is not then and fingerprint(now) != fingerprint(then):
                raise StepError(
                    f"{where}: the captured variable {name} was {then!r} when the step was made, "
                    f"and is {now!r} now; pass it as an argument"
                )


def _content(where: str, cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError as error:
        raise IdentityError(
            f"{where}: the captured variable has no value yet, so the step has no identity; "
            "call the step after it is set, or pass it as an argument"
        ) from error


def rebuild(value: Any, leaf: type[T], replacement: Callable[[T], object]) -> Any:
    """A copy of the tree `value`, with `replacement` called on its leaves of type `leaf`."""
    if isinstance(value, leaf):
        return replacement(value)
    again = functools.partial(rebuild, leaf=leaf, replacement=replacement)
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return kind(map(again, value))
    if kind is dict:
        return {key: again(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*map(again, value))
    return _rebuilt_fields(value, again) if is_dataclass(value) and not isinstance(value, type) else value


def _rebuilt_fields(value: Any, again: Callable[[Any], Any]) -> Any:
    copied = copy.copy(value)
    for field in fields(value):
        object.__setattr__(copied, field.name, again(getattr(value, field.name)))
    return copied


def _annotations(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, AttributeError):  # a name that only a type checker sees, or a local one
        return getattr(function, "__annotations__", {})


def _kind(annotation: Any) -> type | None:
    if isinstance(annotation, str):
        word = annotation.partition("[")[0].rpartition(".")[2]
        return {"Runtime": NoIdentity, "StepContext": StepContext}.get(word)
    if NoIdentity in getattr(annotation, "__metadata__", ()):
        return NoIdentity
    return StepContext if annotation is StepContext else None
