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
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, overload

from treadle.artifacts import canonical, find_prefix
from treadle.errors import ArgumentError, IdentityError
from treadle.execution.arguments import Call, Dependency, Runtime, Source, StepContext, StepFunction, rebuild
from treadle.execution.step_spec import StepSpec, check_name, check_runs

__all__ = ["Handle", "Runtime", "Step", "StepContext", "lower", "step"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Handle(Generic[R_co]):
    """One call of a step function that has not run. `deps` are the handles among its arguments."""

    name: str
    step: Step[R_co] = field(repr=False)
    arguments: Mapping[str, object] = field(repr=False)
    runtime: Mapping[str, object] = field(repr=False)
    captured: Mapping[str, object] = field(repr=False)
    cells: Mapping[str, object] = field(repr=False)
    deps: tuple[Handle[Any], ...] = field(repr=False)
    lowered: dict[str, StepSpec] = field(init=False, repr=False, default_factory=dict)

    def named(self, name: str) -> Handle[R_co]:
        """The same call under another name, so another step.

        Raises:
            ArgumentError: it is no name for a step.
        """
        check_name(name)
        return replace(self, name=name)

    @property
    def id(self) -> str:
        """The id of the step, as in the results of a run; it does not depend on the store."""
        return lower(self).id


class Step(Generic[R_co]):
    """A step function; calling it takes the function's arguments, or handles in place of them."""

    def __init__(self, function: Callable[..., R_co], name: str | None = None) -> None:
        if not hasattr(function, "__qualname__"):
            raise ArgumentError(f"step: expected a function, got {function!r}; to name it: @step(name=...)")
        check_runs(f"step {function.__qualname__}", function)
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function.__name__ if name is None else name
        check_name(self.name)

    @functools.cached_property
    def target(self) -> StepFunction:
        """The function with the kinds of its parameters."""
        # Late, since annotations may name what is defined further down.
        return StepFunction.of(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Handle[R_co]:
        """A handle of the call; nothing runs.

        Raises:
            ArgumentError: the arguments do not fit the function, or a Runtime argument is a handle.
            IdentityError: an argument or a captured variable has no canonical form.
        """
        where = f"step {self.name!r}"
        given = self.target.bind(where, args, kwargs)
        runtime = {name: given.pop(name) for name in self.target.runtime & given.keys()}
        cells = self.target.captured(where)
        _refuse_handles(f"{where}: Runtime argument", runtime)
        _refuse_handles(f"{where}: captured variable", cells)
        deps: dict[Handle[Any], Handle[Any]] = {}
        try:
            arguments = rebuild(given, Handle, lambda dep: deps.setdefault(dep, dep))
            captured = rebuild(cells, Handle, lambda dep: dep)
        except RecursionError as error:
            raise IdentityError(
                f"{where}: an argument or a captured variable contains itself, or is nested too deeply"
            ) from error
        _check_identity(where, arguments, captured)
        return Handle(self.name, self, arguments, runtime, captured, cells, tuple(deps))


@overload
def step(function: Callable[..., R], /) -> Step[R]: ...
@overload
def step(*, name: str) -> Callable[[Callable[..., R]], Step[R]]: ...
def step(function: Callable[..., R] | None = None, /, *, name: str | None = None) -> Any:
    """Make a function a step, named like the function or `name`."""
    return Step(function, name) if function is not None else lambda each: Step(each, name)


def lower(handle: Handle[Any], prefix: str | os.PathLike[str] | None = None) -> StepSpec:
    """The StepSpec of a handle, with those of all that it depends on, in the store `prefix`.

    Each handle is lowered once for a store, whoever asks, and depth is no limit.
    """
    store = find_prefix(prefix)
    stack = [handle]
    while stack:
        top = stack[-1]
        if store in top.lowered:
            stack.pop()
            continue
        if waiting := [dep for dep in top.deps if store not in dep.lowered]:
            stack.extend(waiting)
            continue
        top.lowered[store] = _spec(top, store)
    return handle.lowered[store]


def _spec(handle: Handle[Any], store: str) -> StepSpec:
    specs = {dep: dep.lowered[store] for dep in handle.deps}
    sources = rebuild(handle.arguments, Handle, lambda dep: Source(specs[dep].output_path))
    attributes = {
        "function": handle.step.target.function_name,
        "arguments": rebuild(handle.arguments, Handle, lambda dep: Dependency(specs[dep].hash_id)),
        "captured": handle.captured,
    }
    fn = Call(handle.step.target, sources, handle.runtime, handle.cells, handle.name, store)
    return StepSpec(handle.name, fn, tuple(specs.values()), attributes, output_path_prefix=store)


def _refuse_handles(where: str, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        if isinstance(value, Handle):
            raise ArgumentError(
                f"{where} {name}: expected a value, got {value!r}; only an ordinary argument can be a step"
            )


def _check_identity(where: str, arguments: Mapping[str, object], captured: Mapping[str, object]) -> None:
    """Refuse at the call, where the mistake is, what lowering would refuse later."""
    for name, value in arguments.items():
        canonical(rebuild(value, Handle, lambda _: None), f"{where}: argument {name}")
    for name, value in captured.items():
        canonical(value, f"{where}: captured variable {name}")
