"""`treadle gc`: find what nobody needs in a store, and remove it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Annotated

from cyclopts import Parameter

from treadle.artifacts import Store
from treadle.artifacts.gc import Garbage, GarbageKind, find_garbage, remove_garbage
from treadle.integrations.cli.console import command, counted, say, size, table
from treadle.integrations.cli.known import id_and_name
from treadle.integrations.cli.lookup import opened
from treadle.integrations.cli.options import LOWERING, Lowering
from treadle.integrations.cli.targets import gathered

_NAMED = 10
_REASONS = {
    GarbageKind.WORK: "left by a dead attempt",
    GarbageKind.ASIDE: "left by a dead attempt",
    GarbageKind.UNRECORDED: "no record of it",
    GarbageKind.FORMER: "former build",
    GarbageKind.UNWANTED: "not needed",
}


def gc(
    *targets: str,
    delete: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    all: Annotated[bool, Parameter(negative="", show_default=False)] = False,  # noqa: A002 - as in the command
    options: Annotated[Lowering, Parameter(name="*")] = LOWERING,
) -> None:
    """Say what in a store nobody needs, and with --delete remove it.

    Parameters
    ----------
    targets
        Experiments (FILE.py, FILE.py:NAME or MODULE:NAME): what none of them needs is garbage too. Without
        them, only what dead attempts and former builds have left.
    delete
        Remove it. By default nothing is changed.
    all
        Each thing in a row of its own.
    """
    place = opened(options.store)
    keep = _needed(targets, options) if targets else None
    garbage = find_garbage(place, None if keep is None else keep.keys())
    if garbage and all:
        _tell_each(place, garbage)
    elif garbage:
        _tell_sums(garbage)
    if keep is not None:
        _tell_others(garbage, set(keep.values()))
    if not garbage:
        say(f"nothing to free in {place.prefix}")
    elif delete:
        say(f"freed {size(remove_garbage(place, garbage))} in {place.prefix}")
    else:
        _tell_next(place, garbage, targets, options)


def _needed(targets: Iterable[str], options: Lowering) -> dict[str, str]:
    """The output paths of all that the targets need, near and far, with the names of the steps."""
    steps = (step for target in targets for step in gathered(target, options).steps.values())
    return {step.output_path: step.name for step in steps}


def _tell_sums(garbage: list[Garbage]) -> None:
    """One row for each name and reason, the largest first."""
    sums: dict[tuple[str, str], list[int]] = {}
    for each in garbage:
        sums.setdefault((_name(each), _REASONS[each.kind]), []).append(each.bytes)
    rows = sorted(sums.items(), key=lambda row: (-sum(row[1]), row[0]))
    columns = ("name", "count", "size", "reason")
    cells = [(name, f"{len(sizes):,}", size(sum(sizes)), why) for (name, why), sizes in rows]
    table(columns, cells, right=("count", "size"))


def _tell_each(store: Store, garbage: list[Garbage]) -> None:
    rows = sorted(garbage, key=lambda each: (-each.bytes, each.path))
    cells = [(_id(store, each), size(each.bytes), _REASONS[each.kind]) for each in rows]
    table(("what", "size", "reason"), cells, right=("size",))


def _name(garbage: Garbage) -> str:
    return id_and_name(garbage.place)[1] if garbage.place else "(of attempts)"


def _id(store: Store, garbage: Garbage) -> str:
    return id_and_name(garbage.place)[0] if garbage.place else store.place(garbage.path)


def _tell_others(garbage: list[Garbage], names: Collection[str]) -> None:
    """Whoever names one experiment of several would remove the steps of the others."""
    others = Counter(_name(each) for each in garbage if each.kind is GarbageKind.UNWANTED)
    for name in names:
        del others[name]
    if others:
        listed = ", ".join(sorted(others)[:_NAMED])
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        say(
            f"this includes {counted(others.total(), 'step')} of other names: {listed}{more}; "
            "give every experiment of this store that is to be kept",
            "yellow",
        )


def _tell_next(store: Store, garbage: list[Garbage], targets: tuple[str, ...], options: Lowering) -> None:
    total = size(sum(each.bytes for each in garbage))
    say(f"would free {total} in {store.prefix}: {counted(len(garbage), 'thing')}; nothing was changed")
    say(f"next: {command('gc', *targets, '--delete', *options.words())}")
