"""The budget of workers, which is passed down to what is nested, and the lane that a unit runs in.

A map with a budget of 8 over 4 lanes leaves a budget of 2 to what each of its units starts. A unit that
waits for what it has started needs no worker itself, so together they never use more than 8; one that works
on results while others are still made uses its own beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from treadle.fray.travelling import Travelling

_SHARE: Travelling[int] = Travelling("share of the budget of job_map")
_LANE: Travelling[int] = Travelling("lane of job_map", hint="It is known inside a unit.")


@dataclass(frozen=True)
class Share:
    """Over how many lanes a map runs, and the budget of what is nested in one of them; None: no limit."""

    lanes: int
    nested: int | None


def divide(workers: int, budget: int | None, lanes: int | None) -> Share:
    """The share of a map on a client of so many workers, with a budget of its own and lanes that are wished.

    It gets no more than what the map that it is nested in has left to it.
    """
    most = min((each for each in (budget, current_share()) if each is not None), default=None)
    wished = workers if lanes is None else lanes
    if most is None:
        return Share(wished, None)
    given = min(wished, most)
    return Share(given, most // given)


def current_share() -> int | None:
    """The budget of what is started here; None when there is none."""
    return _SHARE.get() if _SHARE.is_set else None


def current_lane() -> int:
    """The number of the lane, from 0, that runs the unit; no other unit of the map runs in it meanwhile.

    Raises:
        UsageError: this is not inside a unit of `job_map`.
    """
    return _LANE.get()


@contextmanager
def in_lane(lane: int, share: int | None) -> Iterator[None]:
    """The block is the work of the lane, with a budget of `share` for what is nested."""
    with ExitStack() as stack:
        stack.enter_context(_LANE.use(lane))
        if share is not None:
            stack.enter_context(_SHARE.use(share))
        yield
