"""Tells clients of what befalls the whole process: a fork of it, and its end."""

from __future__ import annotations

import atexit
import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Belongs to the process that made it."""

    def after_fork(self) -> None:
        """In the child of a fork: it is the parent's."""
        ...


class Leaving(Protocol):
    """Has something to do when the process ends."""

    def leave(self) -> None:
        """The process ends."""
        ...


_forked: WeakSet[Forked] = WeakSet()
_leaving: WeakSet[Leaving] = WeakSet()


def tell_of_forks(one: Forked) -> None:
    """Call `one.after_fork()` in the child of each fork, as long as it lives."""
    _forked.add(one)


def tell_of_the_end(one: Leaving) -> None:
    """Call `one.leave()` when this process ends, if it lives until then."""
    _leaving.add(one)


def _leave() -> None:
    for each in tuple(_leaving):
        each.leave()


def _after_fork() -> None:
    for each in tuple(_forked):
        each.after_fork()


atexit.register(_leave)
os.register_at_fork(after_in_child=_after_fork)
