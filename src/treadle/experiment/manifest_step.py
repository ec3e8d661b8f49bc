"""A step whose body is a manifest run.

The manifest bears identity by its content, its includes merged, so that editing it makes a new step;
where it lies on disk does not. The run writes into the step's own folder, and whatever the run
reads is a param: an artifact of another step, or a literal.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from treadle.artifacts import Artifact
from treadle.errors import StepError
from treadle.execution import Handle, Runtime, StepContext, step
from treadle.manifest import load_manifest_path, read_manifest
from treadle.processing import RunContext, run_from_manifest
from treadle.processing.context import UNBOUND
from treadle.processing.plugins import load_plugins
from treadle.processing.runners import check_manifest


@step
def manifest_run(
    step_id: str, digest: str, params: Mapping[str, object], path: Runtime[str], ctx: StepContext
) -> Artifact:
    """Run the manifest at `path`, whose content is `digest`."""
    if load_manifest_path(path).digest != digest:
        raise StepError(f"{path}: changed since the step was made; make the handle again")
    run = RunContext.create(step_id, ctx.output_path, integration="experiment")
    run_from_manifest(path, run, {name: _folder(value) for name, value in params.items()})
    return Artifact(ctx.output_path)


def manifest_step(name: str, manifest: Path, **params: object) -> Handle[Artifact]:
    """A handle named `name` for a run of `manifest`; handles among `params` are dependencies.

    In the manifest, the param of a handle is the folder of its artifact.

    Raises:
        UsageError: the manifest, or a param that is no handle, is wrong, or something that the run needs is
            not installed; nothing has run.
    """
    known = {key: "<folder>" if isinstance(value, Handle) else value for key, value in params.items()}
    load_plugins()
    checked = read_manifest(manifest, known, UNBOUND)
    check_manifest(checked)
    return manifest_run(checked.step_id, checked.digest, params, str(manifest)).named(name)


def _folder(value: object) -> object:
    return value.path if isinstance(value, Artifact) else value
