"""Lazy steps: a call of a step function builds a handle, and `lower` makes the handle a StepSpec.

    @step
    def count(lines: list[str], threads: Runtime[int] = 2) -> int: ...

    total = count(read("a.txt"))      # nothing runs; read("a.txt") is a dependency
    spec = lower(total)

The identity of a step is its name, its function's name, the arguments with the defaults filled in,
and what the function captures from around it. A handle among the arguments stands by its own
identity. An argument annotated `Runtime[...]` bears none, and a parameter annotated `StepContext` is
filled in when the step runs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar, overload

from treadle.artifacts.version import check_version
from treadle.errors import ArgumentError, IdentityError
from treadle.execution.handles.annotations import Runtime
from treadle.execution.handles.arguments import Call, Place, StepCall, place
from treadle.execution.handles.captured import NOTHING, captured
from treadle.execution.handles.context import StepContext
from treadle.execution.handles.handle import NO_OPTIONS, Handle, Options, recipe_text
from treadle.execution.handles.lowering import lower
from treadle.execution.handles.remote import Remote
from treadle.execution.handles.step_function import StepFunction
from treadle.execution.handles.tree import ATOMS, frozen, rebuild
from treadle.execution.retry import Retry
from treadle.execution.step_checks import check_fingerprint, check_name, check_runs
from treadle.execution.step_spec import StepSpec
from treadle.fray import ResourceConfig

__all__ = ["Handle", "Runtime", "Step", "StepContext", "lower", "step"]

_ARGUMENT = re.compile(r"\['(arguments|captured)'\]\['(\w+)'\]")
_KINDS = {"arguments": "argument", "captured": "captured variable"}
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Step(Generic[R_co]):
    """A step function; calling it takes the function's arguments, or handles in place of them.

    Its handles begin with its name, `version`, `expected_fingerprint` and options.
    """

    def __init__(
        self,
        function: Callable[..., R_co],
        name: str | None = None,
        version: str | None = None,
        options: Options = NO_OPTIONS,
        expected_fingerprint: str | None = None,
    ) -> None:
        if isinstance(function, Remote):
            options = options._replace(resources=options.resources or function.resources)
            function = function.function
        if not hasattr(function, "__qualname__"):
            raise ArgumentError(f"step: expected a function, got {function!r}; to name it: @step(name=...)")
        check_runs(f"step {function.__qualname__}", function)
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function.__name__ if name is None else name
        check_name(self.name)
        self._where = f"step {self.name!r}"
        self.version = None if version is None else check_version(version, f"{self._where}: version")
        self.options = options.checked(self._where)
        check_fingerprint(self._where, expected_fingerprint)
        self.expected_fingerprint = expected_fingerprint

    @functools.cached_property
    def target(self) -> StepFunction:
        """The function with the kinds of its parameters."""
        # Late, since annotations may name what is defined further down.
        return StepFunction.of(self.function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Handle[R_co]:
        """A handle of the call; nothing runs.

        Raises:
            ArgumentError: the arguments do not fit the function, or a Runtime argument is a handle.
            IdentityError: an argument or a captured variable has no canonical form.
        """
        given = self.target.bind(self._where, args, kwargs)
        runtime = {name: given.pop(name) for name in self.target.runtime & given.keys()} or NOTHING
        cells = captured(self._where, self.function)
        if runtime:
            self._refuse_handles("Runtime argument", runtime)
        if cells:
            self._refuse_handles("captured variable", cells)
        arguments, deps, places = self._freeze(given)
        text = self._text(given, cells, places)
        recipe = _CallRecipe(self.target, arguments, runtime, text if cells else "")
        return Handle(self.name, recipe, deps, text, self.version, self.expected_fingerprint, self.options)

    def map(self, items: Iterable[Any], /, **common: Any) -> tuple[Handle[R_co], ...]:
        """One handle for each item, which is the first argument of its call; `common` are the others.

        Raises:
            ArgumentError, IdentityError: as for a call.
        """
        return tuple(self(item, **common) for item in items)

    def _freeze(self, given: dict[str, Any]) -> tuple[dict[str, Any], tuple[Handle[Any], ...], int]:
        """The arguments with places for the handles among them, the handles, and the number of places."""
        numbers: dict[Handle[Any], int] = {}
        found = 0

        def put_place(dep: Handle[Any]) -> Place:
            nonlocal found
            found += 1
            return place(numbers.setdefault(dep, len(numbers)))

        try:
            copied = {
                name: each if type(each) in ATOMS else frozen(each, Handle, put_place)
                for name, each in given.items()
            }
        except RecursionError as error:
            raise self._circle() from error
        except IdentityError as error:
            raise IdentityError(f"{self._where}: argument: {error}") from error
        return copied, tuple(numbers), found

    def _text(self, given: dict[str, Any], cells: Mapping[str, Any], places: int) -> str:
        attributes: dict[str, object] = {"function": self.target.function_name, "arguments": given}
        if cells:
            attributes["captured"] = dict(cells)
        try:
            return recipe_text(self._where, attributes, places)
        except IdentityError as error:
            # Named as in the call, where it stands, and not as in the recipe.
            message = _ARGUMENT.sub(lambda found: f": {_KINDS[found[1]]} {found[2]}", str(error), count=1)
            raise IdentityError(message) from error

    def _refuse_handles(self, kind: str, values: Mapping[str, object]) -> None:
        """Refuse steps where their value could not be put, however deep they are."""
        for name, value in values.items():
            try:
                rebuild(value, Handle, functools.partial(_refuse, f"{self._where}: {kind} {name}"))
            except RecursionError as error:
                raise self._circle() from error

    def _circle(self) -> IdentityError:
        return IdentityError(
            f"{self._where}: an argument or a captured variable contains itself, or is nested too deeply"
        )


class _CallRecipe(StepCall):
    """The recipe of a call of a step function."""

    __slots__ = ()

    def bind(self, handle: Handle[Any], deps: Sequence[StepSpec], prefix: str, hash_id: str) -> Call:
        """See `Recipe`."""
        return Call(self, deps, handle.name, prefix, hash_id)


@overload
def step(function: Callable[..., R], /) -> Step[R]: ...
@overload
def step(
    *,
    name: str | None = None,
    version: str | None = None,
    resources: ResourceConfig | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    expected_fingerprint: str | None = None,
) -> Callable[[Callable[..., R]], Step[R]]: ...
def step(
    function: Callable[..., R] | None = None,
    /,
    *,
    name: str | None = None,
    version: str | None = None,
    resources: ResourceConfig | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    expected_fingerprint: str | None = None,
) -> Any:
    """Make a function a step, named like the function or `name`; see `Handle` for the options.

    Raises:
        ArgumentError: it is no function, or an option is none.
    """
    options = Options(resources, retry, timeout)
    if function is not None:
        return Step(function, name, version, options, expected_fingerprint)
    return lambda each: Step(each, name, version, options, expected_fingerprint)


def _refuse(where: str, handle: Handle[Any]) -> NoReturn:
    raise ArgumentError(f"{where}: expected a value, got {handle!r}; only an ordinary argument can be a step")
