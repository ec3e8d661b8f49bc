"""The transforms that the section `transforms` of a manifest may name, and the steps that they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.domain.row_batches import batch_step
from treadle.domain.row_step import RowStep
from treadle.errors import ManifestError, Problem
from treadle.manifest import Manifest
from treadle.manifest.model import TransformSection
from treadle.processing.checks import setting_errors_at
from treadle.processing.entry import import_entry
from treadle.processing.transforms import (
    RowTransform,
    TransformOptions,
    find_row_transform,
    find_transform,
    known_transforms,
    read_options,
    unknown_transform,
)


@dataclass(frozen=True)
class NamedTransform:
    """One of the transforms of a manifest, with the name that it has there."""

    name: str
    options: RowTransform | TransformOptions


def read_transforms(manifest: Manifest) -> tuple[NamedTransform, ...]:
    """The transforms of the section `transforms`, their options checked strictly.

    Raises:
        ManifestError: there is none; and each unknown transform, and each option that is unknown, missing or
            wrong.
    """
    if not manifest.transforms:
        expected = f"a list of transforms, which {manifest.run.type} needs"
        raise ManifestError([manifest.problem("transforms", expected, "nothing")])
    found: list[NamedTransform] = []
    problems: list[Problem] = []
    for index, section in enumerate(manifest.transforms):
        try:
            found.append(NamedTransform(section.name, _read(manifest, f"transforms[{index}]", section)))
        except ManifestError as error:
            problems += error.problems
    if problems:
        raise ManifestError(problems)
    return tuple(found)


def bind_steps(manifest: Manifest, transforms: Sequence[NamedTransform]) -> tuple[RowStep, ...]:
    """The steps of the transforms, their functions imported.

    Raises:
        ManifestError: each function that cannot be imported.
    """
    steps: list[RowStep] = []
    problems: list[Problem] = []
    for index, each in enumerate(transforms):
        try:
            steps.append(_step(manifest, f"transforms[{index}]", each))
        except ManifestError as error:
            problems += error.problems
    if problems:
        raise ManifestError(problems)
    return tuple(steps)


def _read(manifest: Manifest, place: str, section: TransformSection) -> RowTransform | TransformOptions:
    of_rows = find_row_transform(section.name)
    if of_rows is not None:
        return read_options(manifest, place, section, of_rows)
    factory = find_transform(section.name)
    if factory is None:
        raise ManifestError([unknown_transform(manifest, place, section.name, known_transforms())])
    if factory.side_inputs:
        side = ", ".join(factory.side_inputs)
        expected = f"a transform without side inputs ({side}); run type partition takes them"
        raise ManifestError([manifest.problem(f"{place}.name", expected, repr(section.name))])
    return read_options(manifest, place, section, factory)


def _step(manifest: Manifest, place: str, transform: NamedTransform) -> RowStep:
    options = transform.options
    with setting_errors_at(manifest, place):
        if isinstance(options, TransformOptions):
            return batch_step(options.bind({}), transform.name)
        entry = getattr(options, "entry", None)
        function = None if entry is None else import_entry(manifest, entry, f"{place}.entry")
        return options.step(function)
