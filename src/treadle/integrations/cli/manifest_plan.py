"""`treadle manifest plan`: what a run of a manifest would read and write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from treadle.errors import ManifestError
from treadle.integrations.cli.console import command, counted, say, size, table
from treadle.integrations.cli.manifest import checked
from treadle.integrations.cli.params import Given, parse_params
from treadle.integrations.cli.run_manifest import RUNS, place_of
from treadle.manifest import Manifest, read_manifest
from treadle.processing.compile import StoragePlan, compile_step_manifest
from treadle.processing.context import UNBOUND, RunContext
from treadle.processing.outlook import kept_of
from treadle.processing.plugins import load_plugins
from treadle.storage import Dataset, OutputSpec, WorkUnit, list_units, shown_url
from treadle.storage.outlook import Kept, Present, present_at


def plan(
    file: Path,
    /,
    *,
    param: Given = (),
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
    described = read_manifest(file, params, UNBOUND)
    root = RUNS if output is None else output
    ctx = RunContext.create(described.step_id, root, integration="cli", params=params)
    if output is None:
        ctx = replace(ctx, output_root=str(place_of(replace(ctx, run_id="<run.id>"), described)))
    manifest = read_manifest(file, params, {"run.id": "<run.id>", "run.output": ctx.output_root})
    if problems := checked(manifest):
        raise ManifestError(problems)
    refused = _tell(manifest, ctx, compile_step_manifest(manifest, ctx))
    given = [word for each in param for word in ("--param", each)]
    placed = [] if output is None else ["--output", output]
    say("next: " + (refused or command("manifest", "run", str(file), *given, *placed)))


def _tell(manifest: Manifest, ctx: RunContext, made: StoragePlan) -> str:
    """Print it; what to do where a run would be refused, else empty."""
    units = {name: list_units(dataset) for name, dataset in made.inputs.items()}
    table(
        ("input", "format", "files", "units", "bytes", "path"),
        [_input(name, made.inputs[name], each) for name, each in units.items()],
        right=("files", "units", "bytes"),
    )
    table(("output", "format", "mode", "files a unit", "path"), list(_outputs(made)), right=("files a unit",))
    kept = kept_of(manifest, ctx, made, {each.identity for found in units.values() for each in found} - {""})
    resumed = kept is not None and kept.same_recipe
    there = {name: found for name, spec in made.outputs.items() if (found := present_at(spec)) is not None}
    for name, present in there.items():
        say(f"output {name}: {_present(present, made.outputs[name], resumed=resumed)}")
    where = manifest.parallelism
    workers = "as many workers as there are" if where.workers is None else counted(where.workers, "worker")
    say(f"backend {where.backend}" + ("" if where.backend == "inprocess" else f", {workers}, {where.assign}"))
    say(f"bad rows: {manifest.errors.on_bad_row}" + (f", to {made.quarantine}" if made.quarantine else ""))
    say(
        f"checkpoint: {made.checkpoint}{_kept(kept, units)}"
        if made.checkpoint
        else "checkpoint: none; a killed run begins again"
    )
    ways = (_way_out(name, each, made.outputs[name], ctx, resumed=resumed) for name, each in there.items())
    return "; ".join(filter(None, ways))


def _input(name: str, dataset: Dataset, units: tuple[WorkUnit, ...]) -> tuple[str, ...]:
    files = {each.source for each in units}
    total = size(sum(each.bytes for each in units))
    return name, dataset.backend, f"{len(files):,}", f"{len(units):,}", total, shown_url(dataset.path)


def _outputs(made: StoragePlan) -> Iterator[tuple[str, ...]]:
    for name, each in made.outputs.items():
        yield name, each.backend, each.mode, f"{each.lanes:,}", shown_url(each.path)


def _present(present: Present, spec: OutputSpec, *, resumed: bool) -> str:
    """What is there, and what a run would do about it."""
    found = present.manifest
    if found is None:
        return "something that is no output of treadle is there, so a run is refused"
    there = f"{counted(found.rows, 'row')} in {counted(len(found.files), 'file')} are there already"
    if spec.mode == "overwrite":
        return f"{there}; a run replaces them (mode overwrite)"
    if spec.mode == "append" and found.backend == spec.backend:
        return f"{there}; a run adds to them (mode append)"
    why = "mode error" if spec.mode == "error" else f"they are {found.backend}, not {spec.backend}"
    unless = ", unless its last commit was cut and goes on" if resumed else ""
    return f"{there}, so a run is refused ({why}){unless}"


def _way_out(name: str, present: Present, spec: OutputSpec, ctx: RunContext, *, resumed: bool) -> str:
    """What to do about an output because of which a run would be refused; empty for another."""
    found = present.manifest
    if found is not None and (spec.mode == "overwrite" or (spec.mode == "error" and resumed)):
        return ""
    if found is not None and spec.mode == "append" and found.backend == spec.backend:
        return ""
    inside = spec.path.startswith(f"{ctx.output_root.rstrip('/')}/")
    place = "give another --output" if inside else f"give outputs.{name} another path"
    modes = ", or say mode: overwrite or append" if found is not None and spec.mode == "error" else ""
    return f"for the output {name}: remove {shown_url(spec.path)}, {place}{modes}"


def _kept_anyway(rows: int) -> str:
    """What of a checkpoint outlives a change of settings: single rows, which are known by what they ask."""
    if rows:
        return (
            f"{counted(rows, 'answer')} kept: a run writes the output anew, and asks only about rows whose "
            "prompt, options or model are new"
        )
    return "what it keeps is of other settings, other code or another version: a run clears it"


def _kept(kept: Kept | None, units: Mapping[str, tuple[WorkUnit, ...]]) -> str:
    """What becomes of the units and rows that are kept; of which phase these are when there are several."""
    if kept is None:
        return ""
    if not kept.same_recipe:
        return f"; {_kept_anyway(kept.rows)}"
    done = frozenset[str]().union(*kept.units.values())
    read = [found for found in units.values() if any(each.identity in done for each in found)]
    total = sum(map(len, read or units.values()))
    several = len(kept.units) > 1
    phases = [
        f"{len(found):,} of {total:,} units{f' ({phase})' if several else ''}"
        for phase, found in kept.units.items()
    ]
    rows = [counted(kept.rows, "row")] if kept.rows else []
    done_so_far = ", ".join([*phases, *rows]) or f"none of {total:,} units"
    if_so = "if side inputs and earlier phases are unchanged, " if kept.conditional else ""
    return f"; {done_so_far} done: {if_so}a run goes on with the others"
