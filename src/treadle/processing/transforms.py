"""Transforms by name: one for the run type `partition`, a list of them for `transform`.

Both kinds are frozen dataclasses whose fields are the options that a manifest may give. A transform of
batches names in `side_inputs` the small tables it needs, and `bind` turns both into a function of record
batches. A transform of rows makes a `RowStep` of its options and of the function that its `entry` names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import pydantic
import pydantic_core

from treadle.errors import ArgumentError, ManifestError, Problem, nearest
from treadle.kernel.registry import Registry
from treadle.manifest import Manifest
from treadle.manifest.model import TransformSection
from treadle.processing.checks import required_section, setting_problem

if TYPE_CHECKING:
    import pyarrow as pa

    from treadle.domain.result import Transform
    from treadle.domain.row_step import RowStep


@runtime_checkable
class TransformOptions(Protocol):
    """The options of one transform of batches; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    side_inputs: ClassVar[tuple[str, ...]]

    def bind(self, side: Mapping[str, pa.Table]) -> Transform:
        """The transform, given the tables of its side inputs."""
        ...


class RowTransform(Protocol):
    """The options of one transform of rows; a frozen dataclass.

    One with a field `entry` gets, in `step`, the function that it names.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def step(self, function: Callable[..., object] | None = None) -> RowStep:
        """The step of a chain."""
        ...


T = TypeVar("T", bound=TransformOptions)
R = TypeVar("R", bound=RowTransform)
OptionsT = TypeVar("OptionsT")

_transforms: Registry[type[TransformOptions]] = Registry("transform")
_row_transforms: Registry[type[RowTransform]] = Registry("transform of rows")


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


def register_row_transform(name: str, options: type[R]) -> type[R]:
    """Let manifests say `transforms: [{name: ...}]` with the fields of the dataclass as further keys.

    Raises:
        ArgumentError: the name is taken by another transform of rows, or `options` is not a dataclass with
            `step`.
    """
    if not all(hasattr(options, name) for name in ("__dataclass_fields__", "step")):
        raise ArgumentError(
            f"the transform of rows {name!r} must be a dataclass with the method step, got {options!r}"
        )
    _row_transforms.register(name, options)
    return options


def read_transform(manifest: Manifest) -> TransformOptions:
    """The transform that the section `transform` describes, its options checked strictly.

    Raises:
        ManifestError: no such section, an unknown transform, and each option that is unknown or of a wrong
            type.
    """
    section = required_section(manifest, "transform", manifest.transform)
    return read_options(manifest, "transform", section, _found(manifest, "transform", section))


def transform_code(manifest: Manifest) -> tuple[object, ...]:
    """The classes whose code decides what the transforms of the manifest do; unknown names are left out."""
    sections = [*([manifest.transform] if manifest.transform else []), *manifest.transforms]
    found = (find_row_transform(each.name) or find_transform(each.name) for each in sections)
    return tuple(each for each in found if each is not None)


def find_transform(name: str) -> type[TransformOptions] | None:
    """The transform of batches of that name, None when nobody registered one."""
    return _transforms.get(name) if name in _transforms else None


def find_row_transform(name: str) -> type[RowTransform] | None:
    """The transform of rows of that name, None when nobody registered one."""
    return _row_transforms.get(name) if name in _row_transforms else None


def known_transforms() -> tuple[str, ...]:
    """What a chain may name, sorted: the transforms of rows and those of batches."""
    return tuple(sorted({*_row_transforms.names(), *_transforms.names()}))


def read_options(
    manifest: Manifest, place: str, section: TransformSection, factory: type[OptionsT]
) -> OptionsT:
    """The options of the section at `place`, as the dataclass `factory`.

    Raises:
        ManifestError: each option that is unknown or of a wrong type.
    """
    known = _names(factory)
    problems = list(_unknown_options(manifest, place, section.options, known))
    given = {name: value for name, value in section.options.items() if name in known}
    try:
        # Through JSON, since strict mode would refuse a tuple, which a list of the manifest is, for a list.
        options = pydantic.TypeAdapter(factory).validate_json(pydantic_core.to_json(given), strict=True)
    except pydantic.ValidationError as error:
        found = (_misfit(manifest, place, each, known) for each in error.errors())
        raise ManifestError([*problems, *found]) from error
    if problems:
        raise ManifestError(problems)
    return options


def _found(manifest: Manifest, place: str, section: TransformSection) -> type[TransformOptions]:
    if section.name in _transforms:
        return _transforms.get(section.name)
    raise ManifestError([unknown_transform(manifest, place, section.name, _transforms.names())])


def unknown_transform(manifest: Manifest, place: str, name: str, known: tuple[str, ...]) -> Problem:
    """The problem of a section at `place` that names a transform that nobody registered."""
    expected = f"one of {', '.join(known)}"
    return manifest.problem(f"{place}.name", expected, repr(name), nearest(name, known))


def _names(factory: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(factory)]


def _unknown_options(
    manifest: Manifest, place: str, options: Mapping[str, object], known: list[str]
) -> Iterator[Problem]:
    expected = f"one of {', '.join(known)}" if known else "no option"
    for option in options:
        if option not in known:
            yield manifest.problem(f"{place}.{option}", expected, repr(option), nearest(option, known))


def _misfit(manifest: Manifest, place: str, error: pydantic_core.ErrorDetails, known: list[str]) -> Problem:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error["loc"])
    field = place + "".join(steps)
    if error["type"] == "value_error":  # from the dataclass itself
        return _refused(manifest, field, str(error["ctx"]["error"]), known)
    if error["type"] == "missing":
        return manifest.problem(field, "a value", "nothing")
    return manifest.problem(field, error["msg"].removeprefix("Input should be "), repr(error["input"]))


def _refused(manifest: Manifest, place: str, reason: str, known: list[str]) -> Problem:
    """The dataclass refuses its values: one that the reason begins with, or all of them together."""
    option, colon, rest = reason.partition(": ")
    if colon and option in known:
        return setting_problem(manifest, f"{place}.{option}", rest)
    return setting_problem(manifest, place, reason)


def _built_in(registry: Registry[Any], module: str, **classes: str) -> None:
    """Transforms whose module is loaded when a manifest names one of them."""
    for name, each in classes.items():
        registry.defer(name, f"treadle.domain.{module}", each)


_built_in(_transforms, "transforms", embed="EmbedTransform", tokenize="TokenizeTransform")
_built_in(_row_transforms, "row_function", map="MapRows", filter="FilterRows")
_built_in(_row_transforms, "row_batches", map_batches="MapBatches")
_built_in(_row_transforms, "row_columns", select="SelectColumns", drop="DropColumns", rename="RenameColumns")
_built_in(_row_transforms, "row_text", normalize="NormalizeRows", replace="ReplaceRows")
_built_in(_row_transforms, "row_text", count_words="CountWords", length="LengthFilter")
_built_in(_row_transforms, "row_choice", keep_if="KeepIf", hash="HashColumns", sample="SampleRows")
