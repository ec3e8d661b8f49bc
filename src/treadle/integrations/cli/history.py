"""`treadle history`: the runs of a store, or the builds and attempts of one step."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rich.text import Text

from treadle.artifacts import Store
from treadle.errors import ArgumentError
from treadle.integrations.cli.console import command, say, table, took, when
from treadle.integrations.cli.known import Known
from treadle.integrations.cli.lookup import StoreOption, find_step, opened
from treadle.storage.ledger import AttemptNote, RunNote

_STYLES: Mapping[str, str] = {
    "done": "green",
    "failed": "bold red",
    "lost": "bold red",
    "cancelled": "yellow",
    "skipped": "yellow",
}


def history(step: str | None = None, /, *, limit: int = 20, store: StoreOption = None) -> None:
    """List the runs of a store, or the builds and attempts of a step, the latest first.

    Parameters
    ----------
    step
        The step: its id, its name, how its id begins, or its place.
    limit
        How many runs, or attempts, at most.
    """
    if limit < 1:
        raise ArgumentError(f"--limit: expected a whole number of at least 1, got {limit}")
    place = opened(store)
    if step is None:
        _tell_runs(place, limit, store)
    else:
        _tell_step(place, find_step(place, step), limit, store)


def _tell_runs(store: Store, limit: int, named: str | None) -> None:
    runs = store.ledger.runs(limit)
    if not runs:
        say(f"no run in {store.prefix} yet; next: {command('run', 'TARGET', store=named)}")
        return
    columns: tuple[str, ...] = ("run", "when", "time", "host", "steps", "command")
    rows = [_run(each) for each in runs]
    if len({each.host for each in runs}) == 1:
        columns, rows = (*columns[:3], *columns[4:]), [(*row[:3], *row[4:]) for row in rows]
    table(columns, rows, right=("time",))
    say(f"next: what the store has: {command('ls', store=named)}")


def _run(note: RunNote) -> tuple[str, ...]:
    counts = ", ".join(f"{count:,} {word}" for word, count in note.counts.items() if count)
    return (
        note.run,
        when(note.started)[:16],
        took(_seconds(note)) if note.ended else "",
        note.host,
        counts if note.ended else "not ended",
        _command(note.command),
    )


def _command(line: str) -> str:
    """Without the folder of the program, which is long and known."""
    program, space, rest = line.partition(" ")
    return f"{program.rpartition('/')[2]}{space}{rest}"


def _seconds(note: RunNote) -> float:
    return (datetime.fromisoformat(note.ended) - datetime.fromisoformat(note.started)).total_seconds()


def _tell_step(store: Store, step: Known, limit: int, named: str | None) -> None:
    say(step.id, "bold")
    entries = store.ledger.builds(step.place)
    heads = [(entry, store.head(entry)) for entry in entries]
    if heads:
        rows = [
            (
                f"{entry.number}",
                head.build[:12],
                when(head.started),
                took(head.seconds),
                _stands(entry.stands),
            )
            for entry, head in reversed(heads)
        ]
        table(("build", "id", "when", "time", ""), rows[:limit], right=("build", "time"))
    else:
        say("no build of it is kept")
    say()
    notes = store.ledger.attempts(step.place, limit=limit)
    table(
        ("attempt", "when", "time", "outcome", "run", "reason"),
        map(_attempt, notes),
        right=("attempt", "time"),
    )
    if len(heads) > 1:
        say(f"next: {command('diff', step.id, store=named)}")
    else:
        say(f"next: {command('logs', step.id, store=named)}")


def _stands(stands: bool) -> str:
    return "stands" if stands else ""


def _attempt(note: AttemptNote) -> tuple[str | Text, ...]:
    outcome = Text(note.outcome, style=_STYLES[note.outcome])
    reason = note.reason.partition("\n")[0]
    return (f"{note.attempt}", when(note.started), took(note.seconds), outcome, note.run, reason)
