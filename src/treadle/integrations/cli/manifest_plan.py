"""`treadle manifest plan`: what a run of a manifest would read and write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treadle.errors import ManifestError
from treadle.integrations.cli.console import command, counted, say, size, table
from treadle.integrations.cli.manifest import checked
from treadle.integrations.cli.params import parse_params
from treadle.integrations.cli.run_manifest import RUNS
from treadle.manifest import Manifest, read_manifest
from treadle.processing.compile import StoragePlan, compile_step_manifest, safe_name
from treadle.processing.context import UNBOUND, RunContext
from treadle.processing.plugins import load_plugins
from treadle.storage import Dataset, WorkUnit, list_units, shown_url


def plan(
    file: Path,
    /,
    *,
    param: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    output: str | None = None,
) -> None:
    """Show what a run of a manifest would read and write, and change nothing.

    Parameters
    ----------
    file
        The manifest, a YAML file.
    param
        A parameter of the manifest, as NAME=VALUE; may be given several times.
    output
        What ${run.output} stands for, a folder or URL; by default a new one in .treadle/runs.
    """
    load_plugins()
    params = parse_params(param)
    step_id = read_manifest(file, params, UNBOUND).step_id
    root = str(RUNS / safe_name(step_id) / "<run.id>") if output is None else output
    ctx = RunContext.create(step_id, root, integration="cli", params=params)
    manifest = read_manifest(file, params, {"run.id": "<run.id>", "run.output": ctx.output_root})
    if problems := checked(manifest):
        raise ManifestError(problems)
    _tell(manifest, compile_step_manifest(manifest, ctx))
    given = [word for each in param for word in ("--param", each)]
    placed = [] if output is None else ["--output", output]
    say(f"next: {command('manifest', 'run', str(file), *given, *placed)}")


def _tell(manifest: Manifest, made: StoragePlan) -> None:
    units = {name: list_units(dataset) for name, dataset in made.inputs.items()}
    table(
        ("input", "format", "files", "units", "bytes", "path"),
        [_input(name, made.inputs[name], each) for name, each in units.items()],
        right=("files", "units", "bytes"),
    )
    table(("output", "format", "mode", "files a unit", "path"), list(_outputs(made)), right=("files a unit",))
    where = manifest.parallelism
    workers = "as many workers as there are" if where.workers is None else counted(where.workers, "worker")
    say(f"backend {where.backend}" + ("" if where.backend == "inprocess" else f", {workers}, {where.assign}"))
    say(f"bad rows: {manifest.errors.on_bad_row}" + (f", to {made.quarantine}" if made.quarantine else ""))
    say(
        f"checkpoint: {made.checkpoint}" if made.checkpoint else "checkpoint: none; a killed run begins again"
    )


def _input(name: str, dataset: Dataset, units: tuple[WorkUnit, ...]) -> tuple[str, ...]:
    files = {each.source for each in units}
    total = size(sum(each.bytes for each in units))
    return name, dataset.backend, f"{len(files):,}", f"{len(units):,}", total, shown_url(dataset.path)


def _outputs(made: StoragePlan) -> Iterator[tuple[str, ...]]:
    for name, each in made.outputs.items():
        yield name, each.backend, each.mode, f"{each.lanes:,}", shown_url(each.path)
