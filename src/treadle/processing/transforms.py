"""Transforms by name, for the run type `partition`.

A transform is a frozen dataclass: its fields are the options a manifest may give, `side_inputs` names the
small tables it needs, and `bind` turns both into a function of record batches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa
import pydantic
import pydantic_core

from treadle.domain.result import Transform
from treadle.domain.transforms import EmbedTransform, TokenizeTransform
from treadle.errors import ArgumentError, ManifestError, Problem, nearest
from treadle.kernel.registry import Registry
from treadle.manifest import Manifest
from treadle.processing.checks import required_section, setting_problem


class TransformOptions(Protocol):
    """The options of one transform; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    side_inputs: ClassVar[tuple[str, ...]]

    def bind(self, side: Mapping[str, pa.Table]) -> Transform:
        """The transform, given the tables of its side inputs."""
        ...


T = TypeVar("T", bound=TransformOptions)

_transforms: Registry[type[TransformOptions]] = Registry("transform")


def register_transform(name: str, options: type[T]) -> type[T]:
    """Let manifests say `transform: {name: ...}` with the fields of the dataclass `options` as further keys.

    Raises:
        ArgumentError: the name is taken by another transform, or `options` is not a dataclass with
            `side_inputs` and `bind`.
    """
    wanted = ("__dataclass_fields__", "side_inputs", "bind")
    if not all(hasattr(options, name) for name in wanted):
        raise ArgumentError(
            f"the transform {name!r} must be a dataclass with the class variable side_inputs and the method "
            f"bind, got {options!r}"
        )
    _transforms.register(name, options)
    return options


def read_transform(manifest: Manifest) -> TransformOptions:
    """The transform that the section `transform` describes, its options checked strictly.

    Raises:
        ManifestError: no such section, an unknown transform, and each option that is unknown or of a wrong
            type.
    """
    section = required_section(manifest, "transform", manifest.transform)
    factory = _find(manifest, section.name)
    problems = list(_unknown_options(manifest, factory, section.options))
    known = {name: value for name, value in section.options.items() if name in _names(factory)}
    try:
        # Through JSON, since strict mode would refuse a tuple, which a list of the manifest is, for a list.
        options = pydantic.TypeAdapter(factory).validate_json(pydantic_core.to_json(known), strict=True)
    except pydantic.ValidationError as error:
        raise ManifestError([*problems, *(_misfit(manifest, each) for each in error.errors())]) from error
    if problems:
        raise ManifestError(problems)
    return options


def _find(manifest: Manifest, name: str) -> type[TransformOptions]:
    if name in _transforms:
        return _transforms.get(name)
    known = _transforms.names()
    expected = f"one of {', '.join(known)}"
    raise ManifestError([manifest.problem("transform.name", expected, repr(name), nearest(name, known))])


def _names(factory: type[TransformOptions]) -> list[str]:
    return [field.name for field in dataclasses.fields(factory)]


def _unknown_options(
    manifest: Manifest, factory: type[TransformOptions], options: Mapping[str, object]
) -> Iterator[Problem]:
    known = _names(factory)
    expected = f"one of {', '.join(known)}" if known else "no option"
    for option in options:
        if option not in known:
            yield manifest.problem(f"transform.{option}", expected, repr(option), nearest(option, known))


def _misfit(manifest: Manifest, error: pydantic_core.ErrorDetails) -> Problem:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error["loc"])
    place = "transform" + "".join(steps)
    if error["type"] == "value_error":  # from the dataclass itself, about its values together
        return setting_problem(manifest, place, error["ctx"]["error"])
    if error["type"] == "missing":
        return manifest.problem(place, "a value", "nothing")
    return manifest.problem(place, error["msg"].removeprefix("Input should be "), repr(error["input"]))


register_transform("embed", EmbedTransform)
register_transform("tokenize", TokenizeTransform)
