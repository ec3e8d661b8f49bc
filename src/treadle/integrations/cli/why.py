"""`treadle why`: why a step would run, or be served."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from treadle.artifacts import open_store
from treadle.execution import OnDrift
from treadle.execution.explain import explain
from treadle.execution.freshness import look
from treadle.integrations.cli.console import command, say, when
from treadle.integrations.cli.lookup import named, owner_of
from treadle.integrations.cli.options import LOWERING, Lowering
from treadle.integrations.cli.targets import Looked, looked_at

_ENDED_BADLY = ("failed", "lost", "cancelled")


def why(
    target: str,
    step: str,
    /,
    *,
    on_drift: OnDrift | None = None,
    options: Annotated[Lowering, Parameter(name="*")] = LOWERING,
) -> None:
    """Say why a step would run or be served, down to the field or the file.

    Parameters
    ----------
    target
        The experiment: FILE.py, FILE.py:NAME or MODULE:NAME.
    step
        The step: its id, its name, or how its id begins.
    on_drift
        What becomes of a done step that has changed since it was built; by default warn.
    """
    looked = looked_at(target, options, on_drift)
    key = looked.find(step)
    for line in explain(looked.graph, looked.plan, key):
        say(line)
    is_needless = key not in looked.plan.done and key not in looked.plan.reasons
    if is_needless:
        _tell_by_itself(looked, key, on_drift)
    _tell_last_attempt(looked, key)
    if is_needless or key in looked.plan.reasons:
        say(f"next: {command('run', target, '--select', key, *options.words())}")
    else:
        say(f"to build it anew: {command('run', target, '--force', key, *options.words())}")


def _tell_by_itself(looked: Looked, key: str, on_drift: OnDrift | None) -> None:
    graph = replace(looked.graph, targets=(key,))
    say("selected:")
    for line in explain(graph, look(graph, frozenset(), on_drift or "warn"), key):
        say(f"  {line}")


def _tell_last_attempt(looked: Looked, key: str) -> None:
    step = looked.graph.steps[key]
    store = open_store(str(step.output_path_prefix))
    place = store.place(step.output_path)
    if (owner := owner_of(store, place)) is not None:
        say(f"at work on it: {owner.describe()}")
        say(f"  what it prints: {command('logs', key, '--follow', store=named(store.prefix))}")
        return
    note = store.ledger.last_attempts([place]).get(place)
    if note is not None and note.outcome in _ENDED_BADLY:
        reason = note.reason.partition("\n")[0]
        say(f"its last attempt, {when(note.started)}, {note.outcome}: {reason}")
        say(f"  the traceback, and what it printed: {command('logs', key, store=named(store.prefix))}")
