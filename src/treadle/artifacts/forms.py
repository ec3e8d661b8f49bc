"""The canonical forms of the types that have one, and the rules that find them."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import fractions
import hashlib
import json
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, Protocol, TypeAlias

from treadle.artifacts.json_form import Json, json_text, number_form, type_name
from treadle.errors import IdentityError

_LONGEST = 2**63  # from here on integers are written in hex
_PLAIN = frozenset({type(None), bool, str})
_TEXT = frozenset({str})


class Walk(Protocol):
    """The way from the top of a value to where its form is made."""

    def inside(self, above: Any, template: str, key: Any, value: Any) -> Json:
        """The form of a part of `above`; `template` says how the part is named by `key`."""
        ...

    def refusal(self, message: str) -> IdentityError:
        """The error that names the place where the walk is."""
        ...


Encode: TypeAlias = Callable[[Any, Walk], Json]


def is_plain(value: Any) -> bool:
    """Whether it is its own canonical form."""
    kind = type(value)
    return kind in _PLAIN or (kind is int and -_LONGEST < value < _LONGEST)


def _number(value: float, walk: Walk) -> Json:
    if value != value:  # NaN alone; `math.isnan` takes no very long integer
        raise walk.refusal("NaN has no canonical form: it does not equal itself; None can say absent")
    return number_form(value)


def _mapping(value: Mapping[Any, Any], walk: Walk) -> Json:
    if not _TEXT.issuperset(map(type, value)):
        return _mapping_of_any(value, walk)
    pairs: list[Json] = []
    for key in sorted(value, key=json.encoder.encode_basestring_ascii):
        each = value[key]
        pairs.append([key, each if is_plain(each) else walk.inside(value, "[{!r}]", key, each)])
    return {"dict": pairs}


def _mapping_of_any(value: Mapping[Any, Any], walk: Walk) -> Json:
    pairs = [
        (walk.inside(value, " key {!r}", key, key), walk.inside(value, "[{!r}]", key, each))
        for key, each in value.items()
    ]
    return {"dict": [[key, each] for key, each in sorted(pairs, key=lambda pair: json_text(pair[0]))]}


def _list(value: list[Any] | tuple[Any, ...], walk: Walk) -> list[Json]:
    return [
        each if is_plain(each) else walk.inside(value, "[{}]", place, each)
        for place, each in enumerate(value)
    ]


def _set(value: frozenset[Any], walk: Walk) -> Json:
    return {"set": sorted((walk.inside(value, " item {!r}", each, each) for each in value), key=json_text)}


def _fields(value: Any, names: Iterable[str], walk: Walk) -> Json:
    content = {name: walk.inside(value, ".{}", name, getattr(value, name)) for name in names}
    return {"fields": content, "type": type_name(type(value))}


def _dataclass(value: Any, walk: Walk) -> Json:
    return _fields(value, [field.name for field in dataclasses.fields(value)], walk)


def _model(value: Any, walk: Walk) -> Json:
    return _fields(value, [*type(value).model_fields, *(value.model_extra or ())], walk)


def _enum(value: Enum, walk: Walk) -> Json:
    content = walk.inside(value, ".{}", "value", value.value)
    return {"enum": value.name, "type": type_name(type(value)), "value": content}


def _defaultdict(value: Any, walk: Walk) -> Json:
    """With what it gives for a missing key, in which a step that reads it may see a difference."""
    factory, kind = value.default_factory, type_name(type(value))
    if factory is None:
        return {"content": _mapping(value, walk), "type": kind}
    if not isinstance(factory, type):
        raise walk.refusal(
            f"the default_factory {factory!r} has no canonical form, so it cannot be part of an identity; "
            "expected a type, such as int or list, or a dict"
        )
    return {"content": _mapping(value, walk), "factory": type_name(factory), "type": kind}


def _bytes(value: bytes, _walk: Walk) -> Json:
    return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}


def _array(value: Any, walk: Walk) -> Json:
    """dtype, shape and content of a numpy array or scalar; content as bytes, little-endian."""
    form: dict[str, Json] = {"array": str(value.dtype.newbyteorder("<").descr), "shape": list(value.shape)}
    if value.dtype.kind in "OV":  # objects are addresses, and records may have holes between their fields
        return {**form, "items": walk.inside(value, "", None, value.tolist())}
    little = value.astype(value.dtype.newbyteorder("<"))
    return {**form, "sha256": hashlib.sha256(little.tobytes()).hexdigest()}


def _time(value: datetime.datetime | datetime.time, _walk: Walk) -> Json:
    """With the name of its zone: two that agree now may part half a year later."""
    zone = getattr(value.tzinfo, "key", None)
    return {"time": value.isoformat(), "zone": zone} if zone else {"time": value.isoformat()}


def _of(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def of_package(module: str, *names: str) -> Callable[[object], bool]:
    """Whether a value is of a class of an optional package, without importing it: if it is, somebody did."""

    def matches(value: object) -> bool:
        package = sys.modules.get(module)  # another thread may be in the middle of importing it
        return isinstance(value, tuple(getattr(package, name, ()) for name in names))

    return matches


def _as(tag: str, text: Callable[[Any], str]) -> Encode:
    return lambda value, _walk: {tag: text(value)}


def _typed(plain: type, encode: Encode) -> Encode:
    """`encode` for the plain type itself; its subclasses are named beside their content."""

    def encode_typed(value: Any, walk: Walk) -> Json:
        content = encode(value, walk)
        return content if type(value) is plain else {"content": content, "type": type_name(type(value))}

    return encode_typed


def _tuple(value: tuple[Any, ...], walk: Walk) -> Json:
    return {"tuple": _list(value, walk)}


EXACT: dict[type, Encode] = {dict: _mapping, list: _list, tuple: _tuple, float: _number}
RULES: tuple[tuple[Callable[[object], bool], Encode], ...] = (
    (_of(Enum), _enum),
    (of_package("numpy", "ndarray", "generic"), _array),
    (lambda value: dataclasses.is_dataclass(value) and not isinstance(value, type), _dataclass),
    (of_package("pydantic", "BaseModel"), _model),
    (_of(int), _typed(int, _number)),
    (_of(float), _typed(float, _number)),
    (_of(str), _typed(str, lambda value, _walk: str.__str__(value))),
    (_of(bytes, bytearray), _typed(bytes, _bytes)),
    (_of(collections.defaultdict), _defaultdict),
    (_of(Mapping), _typed(dict, _mapping)),
    (_of(list), _typed(list, _list)),
    (_of(tuple), _typed(tuple, _tuple)),
    (_of(set, frozenset), _typed(set, _set)),
    (_of(PurePath), _as("path", PurePath.as_posix)),
    (_of(datetime.datetime, datetime.time), _time),
    (_of(datetime.date), _as("date", datetime.date.isoformat)),
    (_of(datetime.timedelta), _as("timedelta", repr)),
    (_of(decimal.Decimal), _as("decimal", str)),
    (_of(fractions.Fraction), _as("fraction", str)),
    (_of(uuid.UUID), _as("uuid", str)),
    (_of(complex), _as("complex", repr)),
    (_of(range), _as("range", repr)),
)
