"""`treadle forget`: the build of a step does not stand any more."""

from __future__ import annotations

from treadle.integrations.cli.console import command, say, when
from treadle.integrations.cli.known import Known, called_apart
from treadle.integrations.cli.lookup import StoreOption, ambiguous, find_steps, opened


def forget(step: str, /, *, store: StoreOption = None) -> None:
    """Let the build of a step not stand any more, so that a run that needs it builds it anew.

    Parameters
    ----------
    step
        The step: its id, how its id begins, its place, or its name, if it is the only one of that name.
    """
    place = opened(store)
    several = find_steps(place, step)
    several = [each for each in several if each.is_built] or several[-1:]
    if len(several) > 1:
        raise ambiguous(step, called_apart(place, several))
    [found] = several
    if not found.is_built:
        say(f"{found.id}: no build of it stands; there was nothing to do")
        _tell_owner(found)
        return
    output = place.output_path(found.place)
    place.forget(output)
    built = f" of {when(found.head.started)}" if found.head is not None else ""
    say(f"{found.id}: build {found.number or 'unreadable'}{built} does not stand any more")
    if found.head is None or found.head.files:
        removed = command("gc", "--delete", store=store)
        say(f"its files stay in {output} until it is built anew, or removed by: {removed}")
    _tell_owner(found)
    say(f"next: {command('run', 'TARGET', '--select', found.name, store=store)}")


def _tell_owner(step: Known) -> None:
    if step.at_work is not None:
        say(f"at work on it, and what that makes will stand: {step.at_work.describe()}")
