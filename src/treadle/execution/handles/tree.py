"""Arguments as trees of lists, tuples, sets, dicts and dataclasses, copied with other leaves in them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from treadle.artifacts.forms import of_package
from treadle.errors import IdentityError

T = TypeVar("T")
ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_CHANGING = (bytearray, Mapping, list, set, tuple, frozenset)  # a subclass of tuple may hold a list
_is_array = of_package("numpy", "ndarray", "void")
_is_model = of_package("pydantic", "BaseModel")


def frozen(value: Any, leaf: type[T], replacement: Callable[[T], object]) -> Any:
    """As `rebuild`, with every part copied that could be changed later, such as arrays and models.

    Raises:
        IdentityError: such a part cannot be copied.
    """
    return rebuild(value, leaf, replacement, _copied)


def rebuild(
    value: Any,
    leaf: type[T],
    replacement: Callable[[T], object],
    rest: Callable[[Any], Any] = lambda each: each,
) -> Any:
    """A copy of the tree `value`, with `replacement` called on its leaves of type `leaf`, `rest` on others.

    What cannot change and holds no leaf is not copied.
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    if isinstance(value, leaf):
        return replacement(value)
    if kind is list:
        return [each if type(each) in ATOMS else rebuild(each, leaf, replacement, rest) for each in value]
    if kind is dict:
        return {key: rebuild(each, leaf, replacement, rest) for key, each in value.items()}
    return _rebuilt(value, rest, lambda each: rebuild(each, leaf, replacement, rest))


def _rebuilt(value: Any, rest: Callable[[Any], Any], part: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return _rebuilt_items(value, rest, part)
    if isinstance(value, dict | list):
        return _refilled(value, part)
    if isinstance(value, MappingProxyType):
        return MappingProxyType(part(dict(value)))
    if is_dataclass(value) and not isinstance(value, type):
        return _rebuilt_fields(value, part)
    return rest(value)


def _rebuilt_items(value: Any, rest: Callable[[Any], Any], part: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if kind not in (tuple, set, frozenset) and not hasattr(value, "_fields"):
        return rest(value)
    items = [part(each) for each in value]
    if kind is not set and all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return kind(*items) if hasattr(value, "_fields") else kind(items)


def _refilled(value: Any, part: Callable[[Any], Any]) -> Any:
    """A copy of an instance of a subclass of dict or list, with whatever else it has."""
    copied = copy.copy(value)
    base: Any = dict if isinstance(value, dict) else list
    for key, each in list(value.items() if base is dict else enumerate(value)):
        base.__setitem__(copied, key, part(each))  # past one of its own, which may do more
    return copied


def _rebuilt_fields(value: Any, part: Callable[[Any], Any]) -> Any:
    old = {field.name: getattr(value, field.name) for field in fields(value)}
    new = {name: part(each) for name, each in old.items()}
    if value.__dataclass_params__.frozen and all(new[name] is old[name] for name in old):
        return value
    copied = copy.copy(value)
    for name, each in new.items():
        object.__setattr__(copied, name, each)
    return copied


def _can_change(value: Any) -> bool:
    if _is_array(value):  # one that is locked, and no view of another, is shared by however many calls
        return bool(value.flags.writeable or value.base is not None or value.dtype.hasobject)
    return isinstance(value, _CHANGING) or _is_model(value)


def _copied(value: Any) -> Any:
    if not _can_change(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise IdentityError(
            f"a value of type {type(value).__qualname__} cannot be copied, so that it could be changed after "
            f"the call, under the identity of before: {type(error).__name__}: {error}"
        ) from error
