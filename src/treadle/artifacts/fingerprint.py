"""Identity: one canonical form for a config, and the hash of it.

The form is a JSON tree. What JSON has no word for is an object with one tag, such as
`{"tuple": [...]}`, so that no two different values share a form. Types are named, sets and mappings
sorted, arrays and bytes stand by their content. So the same value has the same fingerprint in every
process, on every machine, under every hash seed, in whatever order it was put together.

What has no content to speak of is refused with the path to it: functions, and objects that would
only give their address.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import hashlib
import json
import math
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from treadle.errors import IdentityError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A tree that JSON can write."""

_Open: TypeAlias = tuple[int, ...]
_DEPTH = 100


def fingerprint(value: object, path: str = "value") -> str:
    """SHA-256 of the canonical form, in hex; see `canonical`."""
    return hashlib.sha256(_text(canonical(value, path)).encode()).hexdigest()


def canonical(value: object, path: str = "value") -> Json:
    """The canonical form of `value`; `path` is what messages call it.

    Dataclasses and pydantic models stand by their type and fields, enums by type, name and value,
    numpy arrays by dtype, shape and content. A NaN is refused: it does not even equal itself.

    Raises:
        IdentityError: something in it has no canonical form; names the path, as in
            `config.layers[2].activation`.
    """
    return _encode(value, path, ())


def type_name(thing: Any) -> str:
    """`module.Class`, or `module.function`; in a script run as `__main__`, as if it were imported."""
    return f"{module_name(thing.__module__)}.{thing.__qualname__}"


def module_name(name: str) -> str:
    """The name of a module; that of a script run as `__main__` as if it were imported."""
    main = sys.modules.get("__main__")
    if name != "__main__" or main is None:
        return name
    if (spec := getattr(main, "__spec__", None)) is not None:
        return str(spec.name)
    return Path(getattr(main, "__file__", None) or "__main__").stem


def number_form(value: float) -> Json:
    """A number as JSON can write it: very long integers in hex, infinities and NaN by name."""
    if isinstance(value, int):  # Python refuses to write very long integers in decimal, but never in hex
        return int(value) if value.bit_length() < 64 else {"int": hex(value)}
    return float(value) if math.isfinite(value) else {"float": str(float(value))}


def _text(tree: Json) -> str:
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))


def _encode(value: Any, path: str, above: _Open) -> Json:
    if value is None or type(value) in (bool, str):
        return value  # type: ignore[no-any-return]
    if id(value) in above or len(above) >= _DEPTH:
        kind = "contains itself" if id(value) in above else f"is nested deeper than {_DEPTH} levels"
        raise IdentityError(f"{path}: the value {kind}, so it has no canonical form")
    for matches, encode in _RULES:
        if matches(value):
            return encode(value, path, (*above, id(value)))
    raise IdentityError(
        f"{path}: {_described(value)} has no canonical form, so it cannot be part of an identity. "
        "Expected plain data: numbers, strings, paths, dates, enums, arrays, dataclasses, pydantic models, "
        "and lists, tuples, sets and mappings of them. An argument that does not change the result can be "
        "annotated Runtime[...]"
    )


def _described(value: object) -> str:
    if callable(value):
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return f"the callable {getattr(value, '__module__', '?')}.{name}"
    return f"a value of type {type(value).__module__}.{type(value).__qualname__}"


def _number(value: float, path: str, _above: _Open) -> Json:
    if value != value:  # NaN alone; `math.isnan` takes no very long integer
        raise IdentityError(
            f"{path}: NaN has no canonical form: it does not equal itself; None can say absent"
        )
    return number_form(value)


def _mapping(value: Mapping[Any, Any], path: str, above: _Open) -> Json:
    pairs = (
        (_encode(key, f"{path} key {key!r}", above), _encode(each, f"{path}[{key!r}]", above))
        for key, each in value.items()
    )
    return {"dict": [[key, each] for key, each in sorted(pairs, key=lambda pair: _text(pair[0]))]}


def _list(value: list[Any] | tuple[Any, ...], path: str, above: _Open) -> Json:
    return [_encode(each, f"{path}[{place}]", above) for place, each in enumerate(value)]


def _set(value: frozenset[Any], path: str, above: _Open) -> Json:
    return {"set": sorted((_encode(each, f"{path} item {each!r}", above) for each in value), key=_text)}


def _fields(value: Any, names: Iterable[str], path: str, above: _Open) -> Json:
    content = {name: _encode(getattr(value, name), f"{path}.{name}", above) for name in names}
    return {"fields": content, "type": type_name(type(value))}


def _dataclass(value: Any, path: str, above: _Open) -> Json:
    return _fields(value, [field.name for field in dataclasses.fields(value)], path, above)


def _model(value: Any, path: str, above: _Open) -> Json:
    return _fields(value, [*type(value).model_fields, *(value.model_extra or ())], path, above)


def _enum(value: Enum, path: str, above: _Open) -> Json:
    content = _encode(value.value, f"{path}.value", above)
    return {"enum": value.name, "type": type_name(type(value)), "value": content}


def _bytes(value: bytes, _path: str, _above: _Open) -> Json:
    return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}


def _array(value: Any, path: str, above: _Open) -> Json:
    """dtype, shape and content of a numpy array or scalar; content as bytes, little-endian."""
    form: dict[str, Json] = {"array": str(value.dtype.newbyteorder("<").descr), "shape": list(value.shape)}
    if value.dtype.kind in "OV":  # objects are addresses, and records may have holes between their fields
        return {**form, "items": _encode(value.tolist(), path, above)}
    little = value.astype(value.dtype.newbyteorder("<"))
    return {**form, "sha256": hashlib.sha256(little.tobytes()).hexdigest()}


def _of(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def _from(module: str, *names: str) -> Callable[[object], bool]:
    """Whether a value is of a class of an optional package, without importing it: if it is, somebody did."""

    def matches(value: object) -> bool:
        package = sys.modules.get(module)  # another thread may be in the middle of importing it
        return isinstance(value, tuple(getattr(package, name, ()) for name in names))

    return matches


def _as(tag: str, text: Callable[[Any], str]) -> Callable[[Any, str, _Open], Json]:
    return lambda value, _path, _above: {tag: text(value)}


def _typed(plain: type, encode: Callable[[Any, str, _Open], Json]) -> Callable[[Any, str, _Open], Json]:
    """`encode` for the plain type itself; its subclasses are named beside their content."""

    def encode_typed(value: Any, path: str, above: _Open) -> Json:
        content = encode(value, path, above)
        return content if type(value) is plain else {"content": content, "type": type_name(type(value))}

    return encode_typed


_RULES: tuple[tuple[Callable[[object], bool], Callable[[Any, str, _Open], Json]], ...] = (
    (_of(Enum), _enum),
    (_from("numpy", "ndarray", "generic"), _array),
    (lambda value: dataclasses.is_dataclass(value) and not isinstance(value, type), _dataclass),
    (_from("pydantic", "BaseModel"), _model),
    (_of(int), _typed(int, _number)),
    (_of(float), _typed(float, _number)),
    (_of(str), _typed(str, lambda value, _path, _above: str.__str__(value))),
    (_of(bytes, bytearray), _typed(bytes, _bytes)),
    (_of(Mapping), _typed(dict, _mapping)),
    (_of(list), _typed(list, _list)),
    (_of(tuple), _typed(tuple, lambda value, path, above: {"tuple": _list(value, path, above)})),
    (_of(set, frozenset), _typed(set, _set)),
    (_of(PurePath), _as("path", PurePath.as_posix)),
    (_of(datetime.datetime, datetime.time), _as("time", lambda each: each.isoformat())),
    (_of(datetime.date), _as("date", datetime.date.isoformat)),
    (_of(datetime.timedelta), _as("timedelta", repr)),
    (_of(decimal.Decimal), _as("decimal", str)),
    (_of(fractions.Fraction), _as("fraction", str)),
    (_of(uuid.UUID), _as("uuid", str)),
    (_of(complex), _as("complex", repr)),
    (_of(range), _as("range", repr)),
)
