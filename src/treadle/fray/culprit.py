"""Finds what keeps a value from being pickled, and the way to it.

    train -> closure variable 'lock' -> a _thread.lock object

From a value that cannot be pickled the way leads to the first of its parts that cannot be pickled either, and
on from there. It ends at one whose parts are all in order, or are too many to try. Only done when a pickling
has failed already.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, TypeAlias

import cloudpickle

MOST_TRIED = 20_000
"""How many parts are pickled to find the one at fault."""

MOST_SEEN = 1_000_000
"""How many parts of one object are looked at."""

LONGEST_PATH = 200

Parts: TypeAlias = Iterator[tuple[str, Any]]
"""The parts of an object, each with what it is to it."""

_ALWAYS_FINE = (type(None), bool, int, float, complex, str, bytes, bytearray, range, types.ModuleType)


def find_culprit(roots: Iterable[tuple[str, Any]]) -> tuple[list[str], str]:
    """The way to the object at fault, and why it cannot be pickled; both empty when it is not found.

    `roots` are the objects that it may begin at, with their names there; one with an empty name is called as
    `title_of` does.
    """
    tries = iter(range(MOST_TRIED))
    path: list[str] = []
    seen: dict[int, Any] = {}  # the objects too: an id stands for its object only while that lives
    reason, culprit = "", None
    found = _first_at_fault(((label or title_of(root), root) for label, root in roots), tries, seen)
    while found is not None and len(path) < LONGEST_PATH:  # no recursion: depth is no limit
        label, culprit, reason = found
        seen[id(culprit)] = culprit
        path.append(label)
        found = _first_at_fault(parts_of(culprit), tries, seen)
    if path and path[-1] != title_of(culprit):
        path.append(title_of(culprit))
    return path, reason


def is_too_deep(error: BaseException | None) -> bool:
    """Whether it comes from a recursion that went too deep."""
    while error is not None and not isinstance(error, RecursionError):
        error = error.__cause__ or error.__context__
    return error is not None


def title_of(value: object) -> str:
    """What a path calls an object: a function by its name, others by their type."""
    while isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | types.MethodType | type):
        return value.__qualname__.rpartition("<locals>.")[2]
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"a {module}{kind.__qualname__} object"


def _first_at_fault(
    parts: Iterable[tuple[str, Any]], tries: Iterator[int], seen: Mapping[int, Any]
) -> tuple[str, Any, str] | None:
    with suppress(Exception):  # of the objects themselves, on being asked: then the way ends above them
        for label, part in islice(parts, MOST_SEEN):
            if isinstance(part, _ALWAYS_FINE) or id(part) in seen:
                continue
            if next(tries, None) is None:
                return None
            if reason := _why_not(part):
                return label, part, reason
    return None


def _why_not(value: object) -> str:
    """Why the value cannot be pickled; empty when it can."""
    try:
        cloudpickle.dumps(value)
    except Exception as error:  # noqa: BLE001 - any class may raise anything here, and that is what is asked
        return str(error) or type(error).__name__
    return ""


def parts_of(value: Any) -> Parts:
    """What is pickled with the value."""
    if isinstance(value, functools.partial):
        yield from _parts_of_partial(value)
    elif isinstance(value, types.MethodType):
        yield f"the {type(value.__self__).__qualname__} that it is a method of", value.__self__
        yield f"function {title_of(value.__func__)}", value.__func__
    elif isinstance(value, types.FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, type):
        yield from ((label, part) for label, part in _labelled("attribute", vars(value)) if _is_own(part))
    else:
        yield from _parts_of_object(value)


def _is_own(part: object) -> bool:
    """Whether it is no descriptor that the interpreter puts into a class by itself."""
    return not isinstance(part, types.GetSetDescriptorType | types.MemberDescriptorType)


def _parts_of_partial(value: functools.partial[Any]) -> Parts:
    for place, argument in enumerate(value.args, 1):
        yield f"argument {place}", argument
    yield from _labelled("argument", value.keywords)
    if isinstance(value.func, types.FunctionType | types.MethodType):
        yield from parts_of(value.func)
    else:
        yield "its function", value.func


def _parts_of_function(value: types.FunctionType) -> Parts:
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        try:
            yield f"closure variable {name!r}", cell.cell_contents
        except ValueError:  # it is empty: the variable is set later, or was deleted
            continue
    yield from _labelled("global variable", _globals_of(value))
    names = value.__code__.co_varnames[: value.__code__.co_argcount]
    defaults = value.__defaults__ or ()
    for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        yield f"default of {name!r}", default
    yield from _labelled("default of", value.__kwdefaults__ or {})
    yield from _labelled("attribute", vars(value))


def _globals_of(function: types.FunctionType) -> Mapping[str, Any]:
    """What the code of the function, and of those inside it, names and its module has."""
    names: dict[str, None] = {}
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names |= dict.fromkeys(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _parts_of_object(value: Any) -> Parts:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield f"key {key!r:.60}", key
            yield f"item {key!r:.60}", item
    elif isinstance(value, list | tuple | set | frozenset):
        for place, item in enumerate(value):
            yield f"item {place}", item
    yield from _parts_of_reduced(value)


def _parts_of_reduced(value: Any) -> Parts:
    """What an object gives when it is asked for its pickle."""
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # noqa: BLE001 - then the object itself is at fault
        return
    if not isinstance(reduced, tuple):
        return
    _, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    for place, argument in enumerate(arguments, 1):
        yield "its class" if argument is type(value) else f"part {place}", argument
    for each in state if isinstance(state, tuple) else (state,):
        if isinstance(each, Mapping):
            yield from _labelled("attribute", each)
        else:
            yield "state", each
    for place, item in enumerate(items or ()):
        yield f"item {place}", item
    for key, item in pairs or ():
        yield f"item {key!r:.60}", item


def _labelled(label: str, values: Mapping[str, Any]) -> Parts:
    for name, value in tuple(values.items()):
        yield f"{label} {name!r}", value
