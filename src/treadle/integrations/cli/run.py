"""`treadle run`: run the steps of an experiment, or one manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treadle.errors import ArgumentError
from treadle.integrations.cli.options import RUNNING, Running, Several

_MANIFEST = (".yaml", ".yml")


def run(
    target: str,
    /,
    *,
    param: Annotated[Several, Parameter(negative="", show_default=False)] = (),
    output: str | None = None,
    step_id: str | None = None,
    options: Annotated[Running, Parameter(name="*")] = RUNNING,
) -> None:
    """Run an experiment or a manifest.

    Parameters
    ----------
    target
        An experiment: FILE.py, FILE.py:NAME or MODULE:NAME. Or a manifest: FILE.yaml.
    param
        Manifest only: one of its parameters, as NAME=VALUE; may be repeated.
    output
        Manifest only: what ${run.output} stands for, a folder or URL; by default a new one in .treadle/runs.
    step_id
        Manifest only: the step that it has to be for; not checked by default.
    """
    own = {"--param": param or None, "--output": output, "--step-id": step_id}
    if target.endswith(_MANIFEST):
        _refuse(target, "a manifest", options.given(), "experiments")
        # Here: each kind of target brings its own half of the package with it.
        from treadle.integrations.cli.run_manifest import run_manifest

        run_manifest(Path(target), param, output, step_id)
    else:
        _refuse(
            target, "an experiment", [name for name, value in own.items() if value is not None], "manifests"
        )
        from treadle.integrations.cli.run_experiment import run_experiment

        run_experiment(target, options)


def _refuse(target: str, kind: str, given: list[str], others: str) -> None:
    if given:
        raise ArgumentError(
            f"{target} is {kind}, and {', '.join(given)} is for {others} only; leave it out "
            "(treadle run --help)"
        )
