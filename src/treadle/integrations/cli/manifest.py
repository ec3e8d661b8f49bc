"""`treadle manifest`: look at manifests without running them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from treadle.errors import ManifestError, Problem
from treadle.integrations.cli.params import Given, parse_params
from treadle.manifest import (
    Manifest,
    bind_manifest,
    explain_manifest,
    load_manifest_path,
    merged_params_from_manifest,
    read_manifest,
)
from treadle.processing.compile import compile_step_manifest
from treadle.processing.context import UNBOUND, RunContext
from treadle.processing.plugins import load_plugins
from treadle.processing.runners import check_manifest
from treadle.storage.formats.backends import known_formats


def check(
    file: Path,
    /,
    *more: Path,
    param: Given = (),
    form: Annotated[Literal["text", "json", "github"], Parameter(name="--format")] = "text",
) -> None:
    """Say what is wrong with manifests, all at once and each problem with its place; or ok.

    Parameters
    ----------
    file
        The manifest, a YAML file.
    more
        Further manifests.
    param
        A parameter of the manifests, as NAME=VALUE; may be given several times.
    form
        text for people, json for programs, github for annotations of a pull request.
    """
    load_plugins()
    params = parse_params(param)
    found = {each: _problems(each, params) for each in (file, *more)}
    _FORMATS[form](found)
    problems = [problem for each in found.values() for problem in each]
    if problems:
        raise ManifestError(problems)


def explain(file: Path, /, *, param: Given = ()) -> None:
    """Print the final manifest, with the place that each value comes from.

    Parameters
    ----------
    file
        The manifest, a YAML file.
    param
        A parameter of the manifest, as NAME=VALUE; may be given several times.
    """
    overlay = parse_params(param)
    document = load_manifest_path(file)
    params = merged_params_from_manifest(document, overlay)
    manifest = bind_manifest(document, params, UNBOUND)
    sys.stdout.write(explain_manifest(document, params, overlay, manifest))


def checked(manifest: Manifest) -> list[Problem]:
    """What its run type, the formats, the transforms and the places find wrong with a manifest."""
    ctx = RunContext.create(manifest.step_id, UNBOUND["run.output"], integration="cli")
    problems: list[Problem] = []
    for look in (check_manifest, lambda each: compile_step_manifest(each, ctx)):
        try:
            look(manifest)
        except ManifestError as error:
            problems.extend(each for each in error.problems if each not in problems)
    return sorted(problems, key=lambda each: (each.file, each.line, each.column))


def _problems(file: Path, params: Mapping[str, str]) -> Sequence[Problem]:
    try:
        manifest = read_manifest(file, params, UNBOUND, formats=known_formats())
    except ManifestError as error:
        return error.problems
    return checked(manifest)


Found = Mapping[Path, Sequence[Problem]]


def _tell_text(found: Found) -> None:
    for file, problems in found.items():
        if not problems:
            sys.stdout.write("ok\n" if len(found) == 1 else f"{file}: ok\n")


def _tell_json(found: Found) -> None:
    told = [
        {"file": str(file), "ok": not problems, "problems": [asdict(each) for each in problems]}
        for file, problems in found.items()
    ]
    # Here, not at the top: it loads what draws tables, and checks of manifests are to be quick.
    from treadle.integrations.cli.console import say_json

    say_json(told)


def _tell_github(found: Found) -> None:
    """Workflow commands, which a pull request shows at the line."""
    for problems in found.values():
        for each in problems:
            text = str(each).partition(": ")[2]
            for raw, escape in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
                text = text.replace(raw, escape)
            line, column = max(each.line, 1), max(each.column, 1)
            sys.stdout.write(f"::error file={each.file},line={line},col={column}::{text}\n")


_FORMATS: Mapping[str, Callable[[Found], None]] = {
    "text": _tell_text,
    "json": _tell_json,
    "github": _tell_github,
}
