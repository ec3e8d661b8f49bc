"""The function of a step: which of its parameters bear identity, and how a call is bound to them."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from treadle.artifacts import type_name
from treadle.errors import ArgumentError
from treadle.execution.handles.annotations import NoIdentity, parameter_kinds
from treadle.execution.handles.context import StepContext

_PLAIN_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, eq=False)
class StepFunction:
    """The function of a step, and which of its parameters bear no identity or take the context.

    `called` is the signature of a call: all parameters but the context.
    """

    function: Callable[..., Any]
    signature: inspect.Signature
    runtime: frozenset[str]
    context: frozenset[str]
    called: inspect.Signature = field(init=False)

    def __post_init__(self) -> None:
        parameters = [each for name, each in self.signature.parameters.items() if name not in self.context]
        object.__setattr__(self, "called", self.signature.replace(parameters=parameters))
        object.__setattr__(self, "_names", tuple(self.called.parameters))
        positional = [each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in parameters]
        object.__setattr__(self, "_positional", sum(positional))
        object.__setattr__(self, "_is_plain", all(each.kind in _PLAIN_KINDS for each in parameters))
        defaults = [(each.name, each.default) for each in parameters if each.default is not each.empty]
        object.__setattr__(self, "_defaults", defaults)

    _names: tuple[str, ...] = field(init=False, repr=False)
    _positional: int = field(init=False, repr=False)
    _is_plain: bool = field(init=False, repr=False)
    _defaults: list[tuple[str, Any]] = field(init=False, repr=False)

    @classmethod
    def of(cls, function: Callable[..., Any]) -> StepFunction:
        """Read the kinds off the annotations."""
        # What `update_wrapper` has a partial wrap has parameters that the partial has bound already.
        signature = inspect.signature(function, follow_wrapped=not isinstance(function, partial))
        kinds = parameter_kinds(function)
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
        if (fitting := self._bind_plain(args, kwargs)) is not None:
            return fitting
        try:
            bound = self.called.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{where}: {error}; expected {self.signature}") from error
        bound.apply_defaults()
        return bound.arguments

    def _bind_plain(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        """The same for the common signatures, many times faster; None when it cannot tell."""
        if not self._is_plain or len(args) > self._positional:
            return None
        bound = dict(zip(self._names, args, strict=False)) | dict(kwargs)
        if len(bound) != len(args) + len(kwargs):
            return None
        for name, default in self._defaults:
            bound.setdefault(name, default)
        try:
            in_order = {name: bound[name] for name in self._names}
        except KeyError:
            return None
        return in_order if len(in_order) == len(bound) else None

    def __reduce__(self) -> tuple[Any, ...]:
        """By the name of the step where it can be imported: the function's own name is the step's."""
        name = (self.function.__module__, self.function.__qualname__)
        target = getattr(_imported(*name), "target", None)
        if name[0] != "__main__" and isinstance(target, StepFunction) and target.function is self.function:
            return _target_of, name
        return StepFunction, (self.function, self.signature, self.runtime, self.context)

    def call(self, arguments: Mapping[str, Any], context: StepContext) -> Any:
        """Call the function with its arguments and, where it asks for it, the context."""
        bound = self.signature.bind_partial()
        bound.arguments.update(arguments, **dict.fromkeys(self.context, context))
        return self.function(*bound.args, **bound.kwargs)


def _imported(module: str, qualname: str) -> Any:
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


def _target_of(module: str, qualname: str) -> StepFunction:
    importlib.import_module(module)
    return _imported(module, qualname).target  # type: ignore[no-any-return]
