"""`treadle logs`: what a step printed and logged."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from cyclopts import Parameter

from treadle.artifacts import Store
from treadle.artifacts.logs import read_log
from treadle.errors import ArgumentError
from treadle.integrations.cli.console import command, took, warn, when
from treadle.integrations.cli.known import Known, labels_in
from treadle.integrations.cli.lookup import StoreOption, find_steps, opened, owner_of
from treadle.integrations.progress.state import called
from treadle.storage.ledger import AttemptNote

_TAG = re.compile(r"^(?P<time>\S+)Z .*?#(?P<attempt>\d+) \w+ \| ")
_MILLISECONDS = len("2026-01-01T00:00:00.000")
_PAUSE = 0.2


def logs(
    step: str,
    /,
    *,
    attempt: int | None = None,
    follow: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    store: StoreOption = None,
) -> None:
    """Print what a step printed and logged, in all its attempts, and the traceback of what failed.

    Parameters
    ----------
    step
        The step: its id, its name, how its id begins, or its place.
    attempt
        Only the attempt of this number, of the latest run that made it.
    follow
        Go on as long as somebody is at work on the step.
    """
    place = opened(store)
    found = _chosen_step(place, step)
    since = "" if attempt is None else _start_of(place, found, attempt)
    text = read_log(place.prefix, found.place)
    seen = text.rfind("\n") + 1
    written = _write(_chosen(text[:seen], attempt, since))
    if follow:
        written += _follow(place, found, seen, lambda more: _chosen(more, attempt, since))
    if not written:
        warn(f"{found.id} printed nothing")
    _tell_end(place, found, store)


def _chosen_step(store: Store, step: str) -> Known:
    """The step that is meant; told in a line of its own where that was not said by the whole id."""
    several = find_steps(store, step, logged=True)
    found = max(several, key=lambda each: each.time)
    if found.id != step:
        named = several if len(several) > 1 else find_steps(store, found.name, logged=True)
        of = f", the latest of {len(several):,} steps of that name" if len(several) > 1 else ""
        warn(f"log of {called(found.id, labels_in(store, named).get(found.place, ''))}{of}")
    return found


def _start_of(store: Store, step: Known, attempt: int) -> str:
    """When the latest attempt of that number began; empty while it is under way for the first time."""
    notes = store.ledger.attempts(step.place)
    began = next((note.started for note in notes if note.attempt == attempt), None)
    if began is None and owner_of(store, step.place) is None:
        known = sorted({note.attempt for note in notes})
        raise ArgumentError(
            f"step {step.id}: no attempt {attempt} (known: {', '.join(map(str, known)) or 'none'})"
        )
    return (began or "")[:_MILLISECONDS]


def _chosen(text: str, attempt: int | None, since: str) -> Iterator[str]:
    for line in text.split("\n")[:-1]:
        match = _TAG.match(line)
        if attempt is None or (match and int(match["attempt"]) == attempt and match["time"] >= since):
            yield f"{line}\n"


def _write(lines: Iterable[str]) -> int:
    written = 0
    for line in lines:
        sys.stdout.write(line)
        written += 1
    sys.stdout.flush()
    return written


def _follow(store: Store, step: Known, seen: int, chosen: Callable[[str], Iterable[str]]) -> int:
    """Look again and again: neither a file nor the lease of another process tells when it changes."""
    written, at_work = 0, True
    while at_work:
        at_work = owner_of(store, step.place) is not None  # before the last look at what it printed
        text = read_log(store.prefix, step.place)
        whole = text.rfind("\n") + 1
        written += _write(chosen(text[seen:whole]))
        seen = max(seen, whole)
        if at_work:
            time.sleep(_PAUSE)
    return written


def _tell_end(store: Store, step: Known, named: str | None) -> None:
    """How the last attempt ended, where that is what one looks for in a log."""
    note: AttemptNote | None = store.ledger.last_attempts([step.place]).get(step.place)
    left = store.ledger.owners([step.place]).get(step.place)
    owner = owner_of(store, step.place)
    if owner is None and left is not None:
        warn(f"it ended without a word, as when it is killed: {left.describe()}; the next run builds it anew")
    elif owner is not None:
        warn(f"at work on it: {owner.describe()}; next: {command('logs', step.id, '--follow', store=named)}")
    elif note is not None and note.outcome != "done":
        after = f" after {took(note.seconds)}" if note.seconds else ""
        ended = f"{note.outcome}{after}: {note.reason}"
        warn(f"attempt {note.attempt} of run {note.run}, {when(note.started)}, {ended}")
