"""`treadle ls`: what is in a store."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from fnmatch import fnmatchcase
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from treadle.artifacts import Store, is_url
from treadle.errors import ArgumentError
from treadle.integrations.cli.console import command, counted, say, say_json, size, table, took, when
from treadle.integrations.cli.known import Known, known_steps, labels_in
from treadle.integrations.cli.lookup import StoreOption, opened
from treadle.integrations.progress.summary import label


class State(Enum):
    """How it stands with a step."""

    DONE = "done"
    RUNNING = "running"
    FAILED = "failed"
    LOST = "lost"
    CANCELLED = "cancelled"
    FORGOTTEN = "forgotten"
    GONE = "files gone"
    DAMAGED = "damaged"


_STYLES: Mapping[State, str] = {
    State.DONE: "green",
    State.RUNNING: "magenta",
    State.FAILED: "bold red",
    State.LOST: "bold red",
    State.CANCELLED: "yellow",
    State.FORGOTTEN: "dim",
    State.GONE: "yellow",
    State.DAMAGED: "bold red",
}
_FAILED = frozenset({State.FAILED, State.LOST, State.DAMAGED})


def ls(
    pattern: str | None = None,
    /,
    *,
    failed: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    all: Annotated[bool, Parameter(negative="", show_default=False)] = False,  # noqa: A002 - as in the command
    limit: int | None = None,
    json: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    store: StoreOption = None,
) -> None:
    """List the steps of a store, the latest first.

    Parameters
    ----------
    pattern
        Only steps whose name or id fits, such as 'tok*'.
    failed
        Only steps whose last attempt failed, or whose record is damaged.
    all
        Also those that were forgotten, or removed.
    limit
        How many at most.
    json
        As JSON, for programs.
    """
    if limit is not None and limit < 1:
        raise ArgumentError(f"--limit: expected a whole number of at least 1, got {limit}")
    place = opened(store)
    known = [each for each in known_steps(place) if _fits(each, pattern)]
    rows = [(each, state) for each in known if (state := _state(place, each)) is not None]
    if failed:
        rows = [row for row in rows if row[1] in _FAILED]
    listed = [row for row in rows if all or row[1] is not State.FORGOTTEN]
    listed.sort(key=lambda row: row[0].id)
    listed.sort(key=lambda row: row[0].time, reverse=True)
    if json:
        say_json([_as_json(place, each, state) for each, state in listed[:limit]])
        return
    if listed:
        _tell(place, listed[:limit], len(listed))
    if hidden := len(rows) - len(listed):
        again = (pattern,) if pattern is not None else ()
        say(f"{hidden:,} more forgotten or removed: {command('ls', *again, '--all', store=store)}", "dim")
    if listed:
        first, state = listed[0]
        word = "logs" if state in _FAILED or first.head is None else "show"
        say(f"next: {command(word, first.id, store=store)}")
    else:
        what = " that failed" if failed else ""
        fits = f" that fits {pattern!r}" if pattern is not None else ""
        say(f"no step{what}{fits} in {place.prefix}; next: {command('run', 'TARGET', store=store)}")


def _fits(step: Known, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(step.name, pattern) or fnmatchcase(step.id, pattern)


def _state(store: Store, step: Known) -> State | None:
    """None for a step that was only ever skipped."""
    if step.owner is not None:
        return State.LOST if step.at_work is None else State.RUNNING
    if step.damage:
        return State.DAMAGED
    outcome = step.attempt.outcome if step.attempt is not None else "done"
    if outcome in ("failed", "lost", "cancelled"):
        return State(outcome)
    if step.head is None:
        return State.FORGOTTEN if outcome == "done" else None
    # To look at each file of an object store is a question to a server each time: `verify` does it.
    output = store.output_path(step.place)
    stands = is_url(output) or store.files_stand(output, step.head)
    return State.DONE if stands else State.GONE


def _tell(store: Store, shown: list[tuple[Known, State]], count: int) -> None:
    told = labels_in(store, [each for each, _ in shown])
    cells = [_row(each, state, told.get(each.place, "")) for each, state in shown]
    columns: tuple[str, ...] = ("step", "arguments", "when", "time", "files", "size", "state")
    if not told:  # all names differ, or there are too many
        columns, cells = (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in cells]
    table(columns, cells, right=("time", "files", "size"))
    total = sum(file.bytes for each, _ in shown if each.head is not None for file in each.head.files)
    of = f" of {count:,}" if count > len(shown) else ""
    say(f"{counted(len(shown), 'step')}{of}, {size(total)}, in {store.prefix}")


def _row(step: Known, state: State, told: str) -> tuple[str | Text, ...]:
    files = step.head.files if step.head is not None else ()
    return (
        label(step.id, step.name),
        Text(told, style="dim"),
        when(step.time)[:16],
        took(_seconds(step)),
        f"{len(files):,}" if step.head is not None else "",
        size(sum(each.bytes for each in files)) if step.head is not None else "",
        Text(state.value, style=_STYLES[state]),
    )


def _seconds(step: Known) -> float | None:
    if step.head is not None:
        return step.head.seconds
    return step.attempt.seconds if step.attempt is not None else None


def _as_json(store: Store, step: Known, state: State) -> object:
    files = step.head.files if step.head is not None else ()
    return {
        "name": step.name,
        "id": step.id,
        "place": step.place,
        "output_path": store.output_path(step.place),
        "build": step.head.build if step.head is not None else None,
        "when": step.time,
        "seconds": _seconds(step),
        "files": len(files),
        "bytes": sum(each.bytes for each in files),
        "state": state.value,
        "reason": step.damage or (step.attempt.reason if step.attempt is not None else ""),
    }
