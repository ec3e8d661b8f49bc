"""Checks of a manifest against what its run type needs; each problem is placed in the manifest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from treadle.errors import ArgumentError, ManifestError, Problem, nearest
from treadle.manifest import Manifest

S = TypeVar("S")


def required_section(manifest: Manifest, name: str, section: S | None) -> S:
    """The section `name`. Raises ManifestError when the manifest has none."""
    if section is None:
        expected = f"the section {name}, which {manifest.run.type} needs"
        raise ManifestError([manifest.problem(name, expected, "nothing")])
    return section


def check_datasets(
    manifest: Manifest, *, inputs: Collection[str], outputs: Collection[str], optional: Collection[str] = ()
) -> None:
    """Check that every required dataset is there and none is unknown; `optional` outputs may be left out.

    Raises:
        ManifestError: everything missing or unknown, each at its place.
    """
    problems = [
        *_misfits(manifest, "inputs", manifest.inputs, inputs, inputs),
        *_misfits(manifest, "outputs", manifest.outputs, outputs, {*outputs, *optional}),
    ]
    if problems:
        raise ManifestError(problems)


def check_input_columns(manifest: Manifest, name: str, columns: Sequence[str]) -> None:
    """Raises ManifestError when the input declares its columns, but not all that are needed."""
    declared = manifest.inputs[name].columns
    for column in columns:
        if declared is not None and column not in declared:
            expected = f"the column {column!r} among them, which {manifest.run.type} needs"
            found = ", ".join(declared)
            problem = manifest.problem(f"inputs.{name}.columns", expected, found, nearest(column, declared))
            raise ManifestError([problem])


def check_in_process(manifest: Manifest) -> None:
    """Raises ManifestError: the units are to be worked on elsewhere, which the run type does not do."""
    backend = manifest.parallelism.backend
    if backend != "inprocess":
        expected = f"inprocess: {manifest.run.type} works in one process"
        raise ManifestError([manifest.problem("parallelism.backend", expected, repr(backend))])


@contextmanager
def setting_errors_at(manifest: Manifest, field: str) -> Iterator[None]:
    """Place an ArgumentError of the block, about settings read from `field`, in the manifest."""
    try:
        yield
    except ArgumentError as error:
        raise ManifestError([setting_problem(manifest, field, error)]) from error


def setting_problem(manifest: Manifest, field: str, error: object) -> Problem:
    """A problem for settings that `error`, raised by their own class, refuses."""
    return manifest.problem(field, "valid settings", f"an error: {error}")


def _misfits(
    manifest: Manifest, field: str, found: Collection[str], required: Collection[str], known: Collection[str]
) -> Iterator[Problem]:
    run_type = manifest.run.type
    for name in sorted(set(required) - set(found)):
        yield manifest.problem(f"{field}.{name}", f"a dataset, which {run_type} needs", "nothing")
    for name in sorted(set(found) - set(known)):
        expected = f"only {', '.join(sorted(known))} for {run_type}"
        yield manifest.problem(f"{field}.{name}", expected, repr(name), nearest(name, sorted(known)))
