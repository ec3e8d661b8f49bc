"""`treadle gc`: find what nobody needs in a store, and remove it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter

from treadle.artifacts import Store
from treadle.artifacts.gc import Garbage, find_garbage, remove_garbage
from treadle.integrations.cli.console import command, counted, say, size, table
from treadle.integrations.cli.lookup import opened
from treadle.integrations.cli.options import LOWERING, Lowering
from treadle.integrations.cli.targets import gathered

_SHOWN = 50


def gc(
    *targets: str,
    delete: Annotated[bool, Parameter(negative="", show_default=False)] = False,
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
    """
    place = opened(options.store)
    keep = _needed(targets, options) if targets else None
    garbage = find_garbage(place, keep)
    _tell(garbage)
    if not garbage:
        say(f"nothing to free in {place.prefix}")
    elif delete:
        say(f"freed {size(remove_garbage(place, garbage))} in {place.prefix}")
    else:
        _tell_next(place, garbage, targets, options)


def _needed(targets: Iterable[str], options: Lowering) -> set[str]:
    """The output paths of all that the targets need, near and far."""
    return {step.output_path for target in targets for step in gathered(target, options).steps.values()}


def _tell(garbage: list[Garbage]) -> None:
    if garbage:
        shown = sorted(garbage, key=lambda each: (-each.bytes, each.path))[:_SHOWN]
        table(
            ("size", "reason", "path"),
            ((size(each.bytes), each.reason, each.path) for each in shown),
            ("size",),
        )
        if (more := len(garbage) - len(shown)) > 0:
            say(f"and {more:,} more")


def _tell_next(store: Store, garbage: list[Garbage], targets: tuple[str, ...], options: Lowering) -> None:
    total = size(sum(each.bytes for each in garbage))
    say(f"would free {total} in {store.prefix}: {counted(len(garbage), 'thing')}; nothing was changed")
    say(f"next: {command('gc', *targets, '--delete', *options.words())}")
