"""What annotations say of the parameters of a step function: no identity, or the context."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial
from types import UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from treadle.execution.handles.context import StepContext

T = TypeVar("T")


class NoIdentity:
    """Marks an annotation whose argument is not part of the identity."""


Runtime: TypeAlias = Annotated[T, NoIdentity]
"""`Runtime[int]` is an int that does not change the result, such as a number of threads."""

_NAMES: Mapping[str, type] = {"Runtime": NoIdentity, "StepContext": StepContext}


def parameter_kinds(function: Callable[..., Any]) -> dict[str, type | None]:
    """For each annotated parameter `NoIdentity`, `StepContext`, or None for an ordinary one."""
    return {name: _kind(annotation) for name, annotation in _annotations(function).items()}


def _annotations(function: Callable[..., Any]) -> Mapping[str, Any]:
    while isinstance(function, partial):
        function = function.func
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError):  # a name that only a type checker sees, or a local one
        return getattr(function, "__annotations__", {})


def _kind(annotation: Any) -> type | None:
    if isinstance(annotation, str):
        return _kind_of_text(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return _first(map(_kind, get_args(annotation)))
    if NoIdentity in getattr(annotation, "__metadata__", ()):
        return NoIdentity
    return StepContext if annotation is StepContext else None


def _kind_of_text(text: str) -> type | None:
    try:
        return _kind_of_node(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        return None


def _kind_of_node(node: ast.expr) -> type | None:
    match node:
        case ast.BinOp(left=left, right=right):
            return _first(map(_kind_of_node, (left, right)))
        case ast.Subscript(value=ast.Name("Optional" | "Union") | ast.Attribute(attr="Optional" | "Union")):
            inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return _first(map(_kind_of_node, inside))
        case ast.Subscript(value=value):
            return _kind_of_node(value)
        case ast.Name(name) | ast.Attribute(attr=name):
            return _NAMES.get(name)
        case ast.Constant(str(text)):
            return _kind_of_text(text)
    return None


def _first(kinds: Any) -> type | None:
    return next((kind for kind in kinds if kind is not None), None)
