"""What a forked child must not share with its parent: locks, threads, open databases."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something whose state belongs to one process."""

    def reset(self) -> None:
        """Begin anew in a child: fresh locks, nothing open, no claims."""
        ...


_FORKABLE: WeakSet[Forkable] = WeakSet()


def reset_after_fork(each: Forkable) -> None:
    """From now on `each` is reset in every forked child of this process."""
    _FORKABLE.add(each)


def _reset_all() -> None:
    for each in tuple(_FORKABLE):
        each.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
