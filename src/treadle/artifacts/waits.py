"""Leases that are no work on a step: a body waits for a step, and others must be able to see it."""

from __future__ import annotations

import re

from treadle.artifacts.workplace import OWN

_WAIT = re.compile(rf"{re.escape(OWN)}/waits/([0-9a-f]+)/([0-9a-f]+)")


def wait_place(waiting: str, waited_for: str) -> str:
    """The place whose lease says that the one waits for the other; both are digests in hex."""
    return f"{OWN}/waits/{waiting}/{waited_for}"


def read_wait(place: str) -> tuple[str, str] | None:
    """The reverse of `wait_place`; None for any other place."""
    found = _WAIT.fullmatch(place)
    return None if found is None else (found[1], found[2])
