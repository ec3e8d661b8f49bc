"""What a step returned, as JSON that gives back the same types.

Kept are None, booleans, numbers, strings, lists, tuples, dicts with string keys, dataclasses (also
`Artifact`), paths, and datetimes with their offset, though without the name of the zone. Anything
else belongs in a file of the step's output folder.
"""

from __future__ import annotations

import dataclasses
import importlib
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from treadle.artifacts.fingerprint import Json, module_name, number_form
from treadle.errors import ArtifactError


def encode_value(value: object) -> Json:
    """The JSON tree of `value`.

    Raises:
        ArtifactError: something in it is of a type that is not kept; names the type and the place.
    """
    try:
        return _encode(value, "value")
    except RecursionError as error:
        raise ArtifactError("value: nested too deeply, or it contains itself") from error


def decode_value(tree: Json) -> Any:
    """The value that `encode_value` made `tree` from.

    Raises:
        ArtifactError: a dataclass in it cannot be found any more, or has other fields now, or `tree`
            is none that `encode_value` made.
    """
    try:
        return _decode(tree)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"value: it cannot be read back: {type(error).__name__}: {error}") from error


def _decode(tree: Json) -> Any:
    if isinstance(tree, list):
        return [_decode(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    [(tag, content)] = tree.items()
    return _decode_tagged(tag, content)


def _encode(value: Any, where: str) -> Json:
    kind = type(value)
    if value is None or kind in (bool, str):
        return value  # type: ignore[no-any-return]
    if kind in (int, float):
        return number_form(value)
    if kind in (list, tuple):
        items: Json = [_encode(each, f"{where}[{place}]") for place, each in enumerate(value)]
        return items if kind is list else {"tuple": items}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": {key: _encode(each, f"{where}[{key!r}]") for key, each in value.items()}}
    return _encode_object(value, where)


def _encode_object(value: Any, where: str) -> Json:
    kind = type(value)
    if isinstance(value, PurePath):
        return {"path": str(value)}
    if kind is datetime:
        return {"datetime": [value.isoformat(), value.fold]}
    if dataclasses.is_dataclass(value) and "<locals>" not in kind.__qualname__:
        fields: dict[str, Json] = {
            field.name: _encode(getattr(value, field.name), f"{where}.{field.name}")
            for field in dataclasses.fields(value)
        }
        return {"dataclass": [module_name(kind.__module__), kind.__qualname__, fields]}
    raise ArtifactError(
        f"{where}: a value of type {kind.__module__}.{kind.__qualname__} cannot be kept. "
        "Expected None, bool, int, float, str, list, tuple, dict with str keys, Path, datetime, Artifact, "
        "or a dataclass of a module; write anything else into a file of the output folder"
    )


def _decode_tagged(tag: str, content: Any) -> Any:
    match tag:
        case "int":
            return int(content, 16)
        case "float":
            return float(content)
        case "tuple":
            return tuple(_decode(each) for each in content)
        case "dict":
            return {key: _decode(each) for key, each in content.items()}
        case "path":
            return Path(content)
        case "datetime":
            return datetime.fromisoformat(content[0]).replace(fold=content[1])
        case "dataclass":
            return _decode_dataclass(*content)
    raise ArtifactError(f"value: {tag!r} is no tag of a value that this treadle knows")


def _decode_dataclass(module: str, qualname: str, fields: dict[str, Json]) -> object:
    cls = _find_dataclass(module, qualname)
    names = [field.name for field in dataclasses.fields(cls)]
    if sorted(names) != sorted(fields):
        raise ArtifactError(
            f"value: {module}.{qualname} has the fields {names} now, and was kept with {list(fields)}; "
            "build the step again by force"
        )
    value = object.__new__(cls)
    for name, each in fields.items():  # past __init__, which may do more than assign
        object.__setattr__(value, name, _decode(each))
    return value


def _find_dataclass(module: str, qualname: str) -> Any:
    try:
        # What ran as a script was kept under the name it is imported by, so that both can read it.
        is_main = module == module_name("__main__")
        found: Any = importlib.import_module("__main__" if is_main else module)
        for name in qualname.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise ArtifactError(f"value: the dataclass {module}.{qualname} cannot be found: {error}") from error
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise ArtifactError(f"value: {module}.{qualname} is no dataclass any more")
    return found
