"""`treadle manifest run`: the same as `treadle run FILE.yaml`, whatever the file is called."""

from __future__ import annotations

from pathlib import Path

from treadle.integrations.cli.params import Given
from treadle.integrations.cli.run_manifest import run_manifest


def run(
    file: Path,
    /,
    *,
    param: Given = (),
    output: str | None = None,
    step_id: str | None = None,
) -> None:
    """Run a manifest.

    Parameters
    ----------
    file
        The manifest, a YAML file.
    param
        A parameter of the manifest, as NAME=VALUE; may be given several times.
    output
        What ${run.output} stands for, a folder or URL; by default a new one in .treadle/runs.
    step_id
        The step that the manifest has to be for; not checked by default.
    """
    run_manifest(file, param, output, step_id)
