"""`treadle plan`: what a run would do, and how long it would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from treadle import experiment
from treadle.execution import PlannedStep, RunPlan, StepState
from treadle.integrations.cli.console import command, counted, say, say_json, table, took
from treadle.integrations.cli.options import ASKED, Asked, Running, load, tell_unused

_ROWS = 200
_PATH = 8
_STYLES: Mapping[StepState, str] = {
    StepState.RUN: "blue",
    StepState.CACHED: "dim",
    StepState.DRIFTED: "yellow",
    StepState.RUNNING: "magenta",
    StepState.BLOCKED: "dim magenta",
}


def plan(
    target: str,
    /,
    *,
    json: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    options: Annotated[Asked, Parameter(name="*")] = ASKED,
) -> None:
    """Show what a run would do, and change nothing.

    Parameters
    ----------
    target
        The experiment: FILE.py, FILE.py:NAME or MODULE:NAME.
    json
        As JSON, for programs.
    """
    made = experiment.plan(
        *load(target, options.store), reporter=tell_unused, cluster=options.cluster, **options.planning()
    )
    if json:
        say_json(_as_json(made))
        return
    _tell_steps(made)
    _tell_time(made)
    _tell_next(made, target, options)


def _as_json(made: RunPlan) -> object:
    steps = [
        {
            "id": each.id,
            "name": each.name,
            "label": each.label,
            "state": each.state.value,
            "reason": each.reason,
            "deps": list(each.deps),
            "output_path": each.output_path,
            "seconds": each.seconds,
        }
        for each in made.steps
    ]
    counts = {state.value: made.count(state) for state in StepState}
    return {
        "steps": steps,
        "counts": counts,
        "seconds": made.seconds,
        "critical_path": list(made.critical_path),
    }


def _tell_steps(made: RunPlan) -> None:
    """All of them; of very many those that are not simply served."""
    shown = made.steps
    if len(shown) > _ROWS:
        shown = tuple(each for each in shown if each.state is not StepState.CACHED)[:_ROWS]
    on_path = frozenset(made.critical_path)
    rows = [_row(each, each.id in on_path) for each in shown]
    columns: tuple[str, ...] = ("", "step", "arguments", "state", "time", "reason")
    if not any(each.label for each in shown):  # all names differ
        columns, rows = (*columns[:2], *columns[3:]), [(*row[:2], *row[3:]) for row in rows]
    table(columns, rows, right=("time",))
    if (more := len(made.steps) - len(shown)) > 0:
        say(f"and {more:,} more; all of them: --json", "dim")


def _row(step: PlannedStep, on_path: bool) -> tuple[str | Text, ...]:
    state = Text(step.state.value, style=_STYLES[step.state])
    about = "~" if step.state is not StepState.CACHED and step.seconds is not None else ""
    return (
        Text("◆" if on_path else "", style="yellow"),
        step.id,
        Text(step.label, style="dim"),
        state,
        f"{about}{took(step.seconds)}",
        step.reason,
    )


def _tell_time(made: RunPlan) -> None:
    words = {state: f"{made.count(state):,} {_word(state)}" for state in StepState if made.count(state)}
    say(f"{counted(len(made.steps), 'step')}: {', '.join(words.values()) or 'nothing to do'}")
    if not made.count(StepState.RUN):
        return
    if made.seconds is None:
        say("how long it takes is not known: no step of these names has been built here")
        return
    say(f"about {took(made.seconds)}, with {made.at_once} at once, by the times of former builds")
    if made.critical_path:
        names = [step_id.rpartition("@" if "@" in step_id else "-")[0] for step_id in made.critical_path]
        shown = names if len(names) <= _PATH else [*names[: _PATH // 2], "…", *names[-_PATH // 2 :]]
        say(f"◆ longest path: {' → '.join(shown)}")


def _word(state: StepState) -> str:
    return "to run" if state is StepState.RUN else state.value


def _tell_next(made: RunPlan, target: str, options: Asked) -> None:
    if isinstance(options, Running):
        options = replace(options, dry_run=False)
    drifted = next((each.id for each in made.steps if each.state is StepState.DRIFTED), None)
    if drifted is not None:
        say(f"next: what has changed: {command('why', target, drifted, *options.lowering().words())}")
    elif made.count(StepState.CACHED) < len(made.steps):
        say(f"next: {command('run', target, *options.words())}")
    elif made.steps:
        last = made.steps[-1].id
        say(f"next: what a step gave and where it is: {command('show', last, store=options.store)}")
