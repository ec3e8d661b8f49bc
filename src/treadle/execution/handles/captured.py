"""What a function brings along beside its arguments: captured variables, bound values, defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from treadle.artifacts import type_name
from treadle.artifacts.drift import differences
from treadle.artifacts.fingerprint import canonical
from treadle.errors import IdentityError, StepError
from treadle.execution.handles.handle import Handle

NOTHING: Mapping[str, Any] = {}  # shared, since most steps have none; a proxy could not be pickled


def function_attributes(where: str, function: Any) -> dict[str, Any]:
    """What tells a function from others made of the same source: captured and bound values, defaults.

    Raises:
        IdentityError: a captured variable has no value yet; the message begins with `where`.
    """
    if isinstance(function, partial):
        bound = {"args": function.args, "keywords": function.keywords}
        return {**function_attributes(where, function.func), "bound": bound}
    if isinstance(function, MethodType):
        return {"function": type_name(function.__func__), "self": function.__self__}
    if not isinstance(function, FunctionType):
        named = hasattr(function, "__qualname__")
        return {"function": type_name(function)} if named else {"function": type(function), "self": function}
    found: dict[str, Any] = {"function": type_name(function)}
    if cells := captured(where, function):
        found["captured"] = cells
    if function.__defaults__ or function.__kwdefaults__:
        found["defaults"] = [function.__defaults__, function.__kwdefaults__]
    return found


def captured(where: str, function: Any) -> Mapping[str, Any]:
    """The variables that a function takes from the functions around it, and what is bound to it.

    Raises:
        IdentityError: one has no value yet; the message begins with `where`.
    """
    bound: dict[str, Any] = {}
    while isinstance(function, partial | MethodType):
        name, value, function = _unbound(function)
        bound[f"{name}{len(bound) or ''}"] = value
    cells = getattr(function, "__closure__", None)
    if not cells:
        return bound or NOTHING
    names = function.__code__.co_freevars
    return bound | {
        name: _content(f"{where}: {name}", cell)
        for name, cell in zip(names, cells, strict=True)
        if name != "__class__"  # of a method that says `super()`: its class, which `__self__` tells
    }


def check_captured(where: str, function: Any, recipe: str) -> None:
    """See that the captured variables are what they were when `recipe` was made, the text of a recipe.

    A step in a loop sees the loop's variable as it is later, and its identity has it as it was.

    Raises:
        StepError: one is another now.
    """
    now = captured(where, function)
    then = dict(json.loads(recipe)["dict"])["captured"]
    for change in differences(then, canonical(dict(now), where, Handle)):
        raise StepError(
            f"{where}: the captured variable {change.path} was {change.old} when the step was made, "
            f"and is {change.new} now; pass it as an argument"
        )


def _unbound(function: Any) -> tuple[str, Any, Any]:
    """What is bound to a partial or a method, with its name, and the function below."""
    if isinstance(function, partial):
        return "__bound__", [function.args, function.keywords], function.func
    owner = function.__self__
    return "__self__", type_name(owner) if isinstance(owner, type) else owner, function.__func__


def _content(where: str, cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError as error:
        raise IdentityError(
            f"{where}: the captured variable has no value yet, so the step has no identity; "
            "call the step after it is set, or pass it as an argument"
        ) from error
