"""From what a user calls a step to its place in a store.

A step is called by its id (`name-<12 hex>` or `name@version`), how its id begins, its name (of several steps
the one that was built last), its place, or its output path.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from treadle.artifacts import Store, find_prefix, is_url, open_store
from treadle.artifacts.logs import log_file
from treadle.errors import ArgumentError, UnknownNameError
from treadle.integrations.cli.console import command
from treadle.integrations.cli.known import Known, called_apart, id_and_name, known_at, known_steps
from treadle.storage.ledger import Owner
from treadle.storage.ledger.process import is_gone

StoreOption: TypeAlias = Annotated[
    str | None, Parameter(help="The store, a folder or URL; by default that of the project.")
]

_NAMED = 20
_SHOWN = 10


def opened(store: str | None) -> Store:
    """The store that a command looks at.

    Raises:
        ArgumentError: there is none.
    """
    prefix = find_prefix(store)
    if not is_url(prefix) and not Path(prefix).is_dir():
        start = command("run", "TARGET", store=store)
        raise ArgumentError(
            f"store: expected the folder of a store, found none at {prefix}; the first run makes it: {start}"
        )
    return open_store(prefix)


def named(prefix: str) -> str | None:
    """How a line to paste has to name that store; None when it is the one that commands look at anyhow."""
    return None if prefix == find_prefix() else prefix


def owner_of(store: Store, place: str) -> Owner | None:
    """Who has the lease of that place; nobody when that is a process of this machine which is gone."""
    owner = store.ledger.owners([place]).get(place)
    return None if owner is None or is_gone(owner) else owner


def find_step(store: Store, step: str, *, built: bool = False, logged: bool = False) -> Known:
    """The step that `step` means; with `built`, it must have a build that stands.

    With `logged`, also one of which there is only what it printed.

    Raises:
        UnknownNameError: the store knows no such step.
        ArgumentError: several are meant, or it is not built.
    """
    return max(find_steps(store, step, built=built, logged=logged), key=lambda each: each.time)


def find_steps(store: Store, step: str, *, built: bool = False, logged: bool = False) -> list[Known]:
    """All steps of the name `step`, else the one that it means; otherwise as `find_step`."""
    places = _places_called(store, step)
    owners = dict(store.leases())
    known = known_at(store, places | set(store.ledger.places_of(step)), owners)
    if logged:
        known = _with_logs(store, step, known)
    found = _matching(known, step, places)
    if not found:  # a commit that was cut short has left no attempt: look at all there is
        known = known_steps(store)
        found = _matching(known, step, places)
    if not found:
        raise UnknownNameError(f"step in {store.prefix}", step, _nearest(step, known))
    if built and not any(each.is_built for each in found):
        raise _not_built(found[-1], store)
    if built:
        found = [each for each in found if each.is_built]
    if len(found) > 1 and {each.name for each in found} != {step}:
        raise ambiguous(step, called_apart(store, found))
    return found


def ambiguous(step: str, found: list[str]) -> ArgumentError:
    """Several steps are meant: name them."""
    more = f"\n  and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    listed = "\n  ".join(found[:_SHOWN])
    return ArgumentError(f"step {step!r}: {len(found)} steps are called so; give one of\n  {listed}{more}")


def _places_called(store: Store, step: str) -> set[str]:
    """What `step` means where it is a place, and where it is an output path."""
    path = step if is_url(step) else os.path.abspath(step)  # noqa: PTH100 - as `find_prefix` makes it
    return {step.rstrip("/"), store.place(path)}


def _matching(known: Iterable[Known], step: str, places: Collection[str]) -> list[Known]:
    """Those called exactly so, or at one of `places`; else those with an id that begins so."""
    exact = [each for each in known if step in (each.id, each.name) or each.place in places]
    return exact or [each for each in known if step and each.id.startswith(step)]


def _with_logs(store: Store, step: str, known: list[Known]) -> list[Known]:
    """With the logs of steps of that name; those of an object store come when an attempt is over."""
    if is_url(store.prefix):
        return known
    found = {each.place: each for each in known}
    for name in {step, step.rpartition("-")[0], step.rpartition("@")[0], step.rpartition("/")[0]} - {""}:
        for path in Path(log_file(store.prefix, name, "", 0)).with_suffix("").glob("*.log"):
            place = f"{name}/{path.stem}"
            seen = found.get(place) or Known(place, *id_and_name(place))
            printed = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
            found[place] = replace(seen, printed=printed)
    return [found[place] for place in sorted(found)]


def _nearest(step: str, known: list[Known]) -> list[str]:
    """The names that a message can list: all of a few, of many the nearest."""
    names = sorted({each.name for each in known})
    if len(names) <= _NAMED:
        return names
    return difflib.get_close_matches(step, names, n=_NAMED, cutoff=0.3) or names[:_NAMED]


def _not_built(step: Known, store: Store) -> ArgumentError:
    if step.at_work is not None:
        follow = command("logs", step.id, "--follow", store=named(store.prefix))
        return ArgumentError(
            f"step {step.id}: no build of it stands yet; at work on it: {step.at_work.describe()}\n"
            f"  what it prints: {follow}"
        )
    note = step.attempt
    last = f"; its last attempt {note.outcome}: {note.reason}" if note and note.reason else ""
    logs = command("logs", step.id, store=named(store.prefix))
    return ArgumentError(f"step {step.id}: no build of it stands{last}\n  what it printed: {logs}")
