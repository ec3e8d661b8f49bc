"""Run one manifest and say what became of its rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from treadle.errors import RunError
from treadle.integrations.cli.console import command, counted, told_when_stopped, warn
from treadle.integrations.cli.params import parse_params
from treadle.integrations.cli.units_progress import RunNotes, live_progress
from treadle.manifest import Manifest, read_manifest
from treadle.processing.compile import account_path, checkpoint_path, quarantine_path, safe_name
from treadle.processing.context import UNBOUND, RunContext
from treadle.processing.dispatch import run_from_manifest
from treadle.processing.job import RunOutcome
from treadle.storage.atomic import is_remote, local_path
from treadle.telemetry import Sink, fork
from treadle.termination import Terminated

RUNS = Path(".treadle") / "runs"
"""Where outputs go by default: a folder per step, in it one per run."""


def run_manifest(
    manifest: Path, param: Sequence[str] = (), output: str | None = None, step_id: str | None = None
) -> None:
    """Run it; the arguments are the options of `treadle run`."""
    params = parse_params(param)
    described = read_manifest(manifest, params, UNBOUND)
    ctx = RunContext.create(
        described.step_id if step_id is None else step_id,
        RUNS if output is None else output,
        integration="cli",
        params=params,
    )
    if output is None:
        ctx = replace(ctx, output_root=os.fspath(place_of(ctx, described)))
    again = command("manifest", "run", str(manifest), *_words(param, output, step_id))
    console = Console()
    with told_when_stopped(lambda: _to_go_on(ctx, described, again)), live_progress(console) as bars:
        outcome = _run(manifest, ctx, bars)
    tell(ctx, outcome, console, quarantine=described.errors.on_bad_row == "quarantine")


def _words(param: Sequence[str], output: str | None, step_id: str | None) -> list[str]:
    given = [("--param", each) for each in param]
    named = [("--output", output), ("--step-id", step_id)]
    return [word for name, value in (*given, *named) if value is not None for word in (name, value)]


def _to_go_on(ctx: RunContext, manifest: Manifest, again: str) -> str:
    """What is kept of a run that was stopped, and the line that goes on with it."""
    if manifest.checkpoint is None:
        return f"without a checkpoint nothing of a run is kept before its end; to begin again: {again}"
    return f"what is done is kept in {checkpoint_path(ctx, manifest.checkpoint.path)}; to go on: {again}"


def place_of(ctx: RunContext, manifest: Manifest) -> Path:
    """A new folder; or that of the last run of the step, when it has a checkpoint from which to go on."""
    runs = RUNS / safe_name(ctx.step_id)
    if manifest.checkpoint is not None and runs.is_dir():
        left = [each for each in runs.iterdir() if _is_left(ctx, each, manifest.checkpoint.path)]
        if left:
            return max(left)
    return runs / ctx.run_id


def _is_left(ctx: RunContext, root: Path, folder: str | None) -> bool:
    """Whether a run with its outputs in `root` has left a checkpoint."""
    there = replace(ctx, output_root=str(root))
    path = checkpoint_path(there, folder)
    if is_remote(path) or not local_path(path).is_dir():
        return False
    # One outside may be of a run with other outputs; that of a run that is complete it is not.
    return local_path(path).is_relative_to(root.absolute()) or not Path(account_path(there)).exists()


def _run(manifest: Path, ctx: RunContext, bars: Sink) -> RunOutcome:
    notes = RunNotes()
    try:
        return run_from_manifest(manifest, ctx, sink=fork(bars, notes))
    except Terminated:
        raise
    except SystemExit as error:  # from code of a plugin; with its exit code the run could pass for a success
        raise RunError(
            f"the code of this run called sys.exit({error.code!r}); let it return instead"
        ) from error
    finally:
        for each in notes.told:
            warn(f"warning: {each}")


def tell(ctx: RunContext, outcome: RunOutcome, console: Console, *, quarantine: bool) -> None:
    """Print the account of a run, where its outputs are, and what to look at next.

    `quarantine` says whether rejected rows were kept.
    """
    counters = outcome.counters
    _say(console, f"{ctx.step_id} finished in {outcome.seconds:.1f} s")
    for line in _counts(outcome):
        _say(console, line)
    if outcome.outputs:
        console.print(_outputs(outcome))
    if outcome.account is not None:
        _say(console, f"the account of each unit is in {outcome.account}")
    if outcome.first_reasons:
        _say(console, "\n  ".join(("the first rejected rows:", *outcome.first_reasons)))
    if counters.rejected and quarantine:
        _say(console, f"next: see why rows were rejected, in {quarantine_path(ctx)}")
    elif counters.rejected and counters.rejected == counters.rows_in:
        _say(
            console,
            "next: every row was rejected, and none is kept: mend what the reasons name, or keep the "
            "rows (errors: {on_bad_row: quarantine}), then run again into another place",
        )
    elif folders := [each for each in outcome.outputs.values() if each.backend != "postgres"]:
        _say(console, f"next: columns and checksums of an output are in {folders[0].path}/_manifest.json")


def _counts(outcome: RunOutcome) -> Iterator[str]:
    """What became of the rows, what of it was done before, and what it took."""
    counters = outcome.counters
    yield (
        f"{counters.rows_in:,} rows in = {counters.rows_out:,} out + {counters.filtered:,} filtered "
        f"+ {counters.rejected:,} rejected"
    )
    before = sum(each.resumed for each in outcome.units)
    if before:
        yield f"{before:,} of {len(outcome.units):,} units were done already"
    if "new_tokens" in counters.extra:
        yield from _answers(counters.extra, counters.rows_out)


def _answers(sums: Mapping[str, int], count: int) -> Iterator[str]:
    """What the answers of a model took in this run, and how many of all `count` are not whole."""
    kept = sums.get("answered_before", 0)
    if kept < count:
        read, new, milliseconds = (
            sums[name] - sums.get(f"{name}_before", 0)
            for name in ("prompt_tokens", "new_tokens", "engine_milliseconds")
        )
        pace = f" ({1000 * new / milliseconds:,.1f} tokens/s)" if milliseconds else ""
        yield f"{read:,} tokens read, {new:,} generated in {milliseconds / 1000:,.1f} s of the engine{pace}"
    if kept:
        yield f"{counted(kept, 'answer')} {'was' if kept == 1 else 'were'} kept from before"
    if cut := sums["cut_answers"]:
        were = "was" if cut == 1 else "were"
        yield f"{cut:,} of {counted(count, 'answer')} {were} cut short by max_new_tokens"


def _outputs(outcome: RunOutcome) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("output")
    table.add_column("rows", justify="right")
    table.add_column("files", justify="right")
    table.add_column("path", overflow="fold")
    for name, output in sorted(outcome.outputs.items()):
        table.add_row(Text(name), f"{output.rows:,}", f"{len(output.files):,}", Text(output.path))
    return table


def _say(console: Console, line: str) -> None:
    # Soft wrap and no markup: a path stays one line, whatever it holds.
    console.print(line, soft_wrap=True, markup=False, highlight=False)
