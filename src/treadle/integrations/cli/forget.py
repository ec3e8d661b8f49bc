"""`treadle forget`: the build of a step does not stand any more."""

from __future__ import annotations

from treadle.integrations.cli.console import command, say, when
from treadle.integrations.cli.lookup import StoreOption, find_step, opened


def forget(step: str, /, *, store: StoreOption = None) -> None:
    """Let the build of a step not stand any more, so that the next run builds it anew.

    Parameters
    ----------
    step
        The step: its id, its name, how its id begins, or its place.
    """
    place = opened(store)
    found = find_step(place, step)
    if not found.is_built:
        say(f"{found.id}: no build of it stands; there was nothing to do")
        return
    output = place.output_path(found.place)
    place.forget(output)
    built = f" of {when(found.head.started)}" if found.head is not None else ""
    say(f"{found.id}: build {found.number or 'unreadable'}{built} does not stand any more")
    if found.head is None or found.head.files:
        removed = command("gc", "--delete", store=store)
        say(f"its files stay in {output} until it is built anew, or removed by: {removed}")
    say(f"next: {command('run', 'TARGET', store=store)}")
