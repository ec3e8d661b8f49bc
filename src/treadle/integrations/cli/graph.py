"""`treadle graph`: draw the steps of an experiment, with their states."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from treadle import experiment
from treadle.errors import ArgumentError
from treadle.execution import RunPlan
from treadle.execution.graph import StepGraph
from treadle.execution.labels import labels
from treadle.integrations.cli.console import check_place, counted, say
from treadle.integrations.cli.options import ASKED, Asked
from treadle.integrations.cli.targets import gathered
from treadle.integrations.graph import PlanGraph, PlanNode, to_html, to_mermaid, to_svg

Format: TypeAlias = Literal["mermaid", "svg", "html"]
_FORMATS: dict[str, Format] = {
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".md": "mermaid",
    ".txt": "mermaid",
}


def graph(
    target: str,
    /,
    *,
    format: Format | None = None,  # noqa: A002 - it is the name of the option
    output: Path | None = None,
    options: Annotated[Asked, Parameter(name="*")] = ASKED,
) -> None:
    """Draw the steps of an experiment, with the states of the plan.

    Parameters
    ----------
    target
        The experiment: FILE.py, FILE.py:NAME or MODULE:NAME.
    format
        By default what the ending of the output says, else mermaid.
    output
        The file to write; by default standard output.
    """
    kind = format or _by_ending(output)
    if output is not None:
        check_place(output)
    whole = gathered(target, options)
    asked = {**options.planning(), "versions": None}  # the steps have their versions
    made = experiment.plan(*(whole.steps[key] for key in whole.targets), **asked)
    drawn = _as_graph(whole, made)
    text = _drawn(drawn, kind, target)
    if output is None:
        sys.stdout.write(text)
        return
    output.write_text(text, encoding="utf-8")
    say(f"{counted(len(drawn.nodes), 'step')}, as {kind}, in {output.resolve()}")


def _by_ending(output: Path | None) -> Format:
    if output is None:
        return "mermaid"
    found = _FORMATS.get(output.suffix.lower())
    if found is None:
        raise ArgumentError(
            f"--output {output}: expected an ending out of {', '.join(_FORMATS)}, got "
            f"{output.suffix or 'none'}; for another one give --format"
        )
    return found


def _as_graph(steps: StepGraph, made: RunPlan) -> PlanGraph:
    """All steps; those that are not there, and not needed, have no state."""
    planned = {each.id: each for each in made.steps}
    told = labels(steps.steps)
    nodes = [
        PlanNode(key, each.name, plan.state.value, plan.seconds, plan.reason, plan.label)
        if (plan := planned.get(key)) is not None
        else PlanNode(key, each.name, label=told.get(key, ""))
        for key, each in ((key, steps.steps[key]) for key in steps.order)
    ]
    return PlanGraph(nodes, [(dep, key) for key in steps.order for dep in steps.deps[key]])


def _drawn(drawn: PlanGraph, kind: Format, target: str) -> str:
    if kind == "mermaid":
        return to_mermaid(drawn)
    return to_svg(drawn, target) if kind == "svg" else to_html(drawn, target)
