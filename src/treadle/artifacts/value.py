"""What a step returned, as JSON that gives back the same types.

Kept are None, booleans, numbers (those of numpy as the number they are), strings, lists, tuples, dicts,
dataclasses (also `Artifact`), paths, and datetimes with their offset, though without the name of the
zone. Anything else belongs in a file of the step's output folder.

A path of that folder, or of something in it, is kept as what it is there, wherever the folder lies: a
step fills a working folder that is moved when it is done, and a store may be moved as a whole. So is a
path of anything else in the store, such as the artifact of another step.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
import sys
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from treadle.artifacts.forms import of_package
from treadle.artifacts.json_form import Json, json_text, number_form
from treadle.artifacts.prefix import is_url, join
from treadle.artifacts.script import module_name, script_class
from treadle.errors import ArtifactError

_is_of_numpy = of_package("numpy", "number", "bool_")


def encode_value(value: object, folder: str, prefix: str = "") -> Json:
    """The JSON tree of `value`, which a step returned that filled `folder` in the store `prefix`.

    Raises:
        ArtifactError: something in it is of a type that is not kept; names the type and the place.
    """
    try:
        return _Encoder(folder, prefix).encode(value, "value")
    except RecursionError as error:
        raise ArtifactError("value: nested too deeply, or it contains itself") from error


def decode_value(tree: Json, folder: str, prefix: str = "") -> Any:
    """The value that `encode_value` made `tree` from, now that what the step filled is `folder`.

    `prefix` is the store, which may have moved since.

    Raises:
        ArtifactError: a dataclass in it cannot be found any more, or has other fields now, or `tree`
            is none that `encode_value` made.
    """
    try:
        return _Decoder(folder, prefix).decode(tree)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"value: it cannot be read back: {type(error).__name__}: {error}") from error


class _Encoder:
    """Encodes what a step returned that filled `folder` in the store `prefix`."""

    def __init__(self, folder: str, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix

    def encode(self, value: Any, where: str) -> Json:
        kind = type(value)
        if value is None or kind is bool:
            return value  # type: ignore[no-any-return]
        if kind is str:
            return self._text(value)
        if kind in (int, float):
            return number_form(value)
        if kind in (list, tuple):
            items: Json = [self.encode(each, f"{where}[{place}]") for place, each in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict and all(type(key) is str and self._text(key) is key for key in value):
            return {"dict": {key: self.encode(each, f"{where}[{key!r}]") for key, each in value.items()}}
        return self._object(value, where)

    def _text(self, text: str) -> Json:
        if "/" in text:
            for tag, place in self._places:
                if text == place or text.startswith(f"{place}/"):
                    return {tag: text[len(place) + 1 :]}
        return text

    @functools.cached_property
    def _places(self) -> list[tuple[str, str]]:
        """What paths are told by, also without links: many libraries resolve the paths they give back."""
        given = (("here", self._folder), ("store", self._prefix))
        return [(tag, each) for tag, place in given for each in _spellings(place) if each]

    def _pairs(self, value: dict[Any, Any], where: str) -> Json:
        keys = [self.encode(key, f"{where} key {key!r}") for key in value]
        if len(set(map(json_text, keys))) < len(keys):  # a path with links and without, say
            raise ArtifactError(
                f"{where}: expected keys that differ, got several that are one: {list(value)}"
            )
        items = [self.encode(each, f"{where}[{key!r}]") for key, each in value.items()]
        return [[key, each] for key, each in zip(keys, items, strict=True)]

    def _object(self, value: Any, where: str) -> Json:
        kind = type(value)
        if kind is dict:
            return {"pairs": self._pairs(value, where)}
        if _is_of_numpy(value) and value.dtype.kind in "biuf" and type(value.item()) is not kind:
            return self.encode(value.item(), where)
        if isinstance(value, PurePath):
            return {"path": self._text(str(value))}
        if kind is datetime:
            return {"datetime": [value.isoformat(), value.fold]}
        if dataclasses.is_dataclass(value) and _can_be_found(kind):
            fields: dict[str, Json] = {
                field.name: self.encode(getattr(value, field.name), f"{where}.{field.name}")
                for field in dataclasses.fields(value)
            }
            return {"dataclass": [module_name(kind.__module__), kind.__qualname__, fields]}
        raise ArtifactError(
            f"{where}: a value of type {kind.__module__}.{kind.__qualname__} cannot be kept. "
            "Expected None, bool, int, float, str, list, tuple, dict, Path, datetime, "
            "Artifact, or a dataclass of a module; write anything else into a file of the output folder"
        )


def _spellings(place: str) -> dict[str, None]:
    """The path of a folder, and the same without links."""
    real = os.path.realpath(place) if place and not is_url(place) else place
    return dict.fromkeys((place, real))


class _Decoder:
    """Decodes what a step returned whose output is `folder` now, in the store `prefix`."""

    def __init__(self, folder: str, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix

    def decode(self, tree: Json) -> Any:
        if isinstance(tree, list):
            return [self.decode(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        [(tag, content)] = tree.items()
        return self._tagged(tag, content)

    def _tagged(self, tag: str, content: Any) -> Any:
        match tag:
            case "here":
                return join(self._folder, content)
            case "store":
                return join(self._prefix, content)
            case "pairs":
                return {self.decode(key): self.decode(each) for key, each in content}
            case "path":
                return Path(self.decode(content))
            case "tuple":
                return tuple(self.decode(each) for each in content)
            case "dict":
                return {key: self.decode(each) for key, each in content.items()}
            case "dataclass":
                module, qualname, fields = content
                return _build(module, qualname, {name: self.decode(each) for name, each in fields.items()})
        return _number_or_time(tag, content)


def _number_or_time(tag: str, content: Any) -> object:
    match tag:
        case "int":
            return int(content, 16)
        case "float":
            return float(content)
        case "datetime":
            return datetime.fromisoformat(content[0]).replace(fold=content[1])
    raise ArtifactError(f"value: {tag!r} is no tag of a value that this treadle knows")


def _build(module: str, qualname: str, fields: dict[str, Any]) -> object:
    cls = _find_dataclass(module, qualname)
    names = [field.name for field in dataclasses.fields(cls)]
    if sorted(names) != sorted(fields):
        raise ArtifactError(
            f"value: {module}.{qualname} has the fields {names} now, and was kept with {list(fields)}; "
            "build the step again by force"
        )
    value = object.__new__(cls)
    for name, each in fields.items():  # past __init__, which may do more than assign
        object.__setattr__(value, name, each)
    return value


def _find_dataclass(module: str, qualname: str) -> Any:
    try:
        found = _find(module, qualname)
    except (Exception, SystemExit) as error:  # a module may raise anything while it is imported
        raise ArtifactError(
            f"value: the dataclass {module}.{qualname} cannot be found: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise ArtifactError(f"value: {module}.{qualname} is no dataclass any more")
    return found


def _find(module: str, qualname: str) -> Any:
    # What ran as a script was kept under the name it is imported by, so that both can read it.
    if module == module_name("__main__"):
        return script_class(qualname)
    return functools.reduce(getattr, qualname.split("."), importlib.import_module(module))


def _can_be_found(kind: type) -> bool:
    """Whether the class is one of its module; one of a function looks like that when it was pickled."""
    try:
        if kind.__module__ in sys.modules:
            _find(module_name(kind.__module__), kind.__qualname__)
    except AttributeError:
        return False
    return "<locals>" not in kind.__qualname__
