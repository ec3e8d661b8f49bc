"""The graphs, and the step that all contenders run: it does nothing but count how deep it lies."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TypeAlias

THREADS = 4
DEPTH = 50

Needs: TypeAlias = Mapping[int, tuple[int, ...]]
"""Step -> the steps that it needs, which come before it."""

RAN: list[int] = []
"""The steps whose body ran in this process, as evidence that a cold run runs all and a warm one none."""


def work(key: int, *values: int) -> int:
    """The body of step `key`, given what the steps returned that it needs."""
    RAN.append(key)
    return 1 + max(values, default=0)


def chain(steps: int) -> Needs:
    """One after the other."""
    return {at: (at - 1,) if at else () for at in range(steps)}


def fan(width: int) -> Needs:
    """One step, `width` that need it, and one that needs them all."""
    return {0: (), **dict.fromkeys(range(1, width + 1), (0,)), width + 1: tuple(range(1, width + 1))}


def layered(steps: int, needs: int = 3, seed: int = 7) -> Needs:
    """Fifty layers of equal width; each step needs some at random of the layer before."""
    chance, width = random.Random(seed), max(needs, steps // DEPTH)
    return {
        at: tuple(sorted(chance.sample(range((at // width - 1) * width, at // width * width), needs)))
        if at >= width
        else ()
        for at in range(steps)
    }


def sinks(needs: Needs) -> list[int]:
    """The steps that no other needs."""
    needed = {each for some in needs.values() for each in some}
    return [key for key in needs if key not in needed]


def shapes(small: bool = False) -> dict[str, Needs]:
    """The graphs of the comparison; `small` is for contenders that would take minutes."""
    return {
        "chain of 200": chain(200),
        "fan 1-1000-1": fan(250 if small else 1_000),
        "layered 2,000": layered(500 if small else 2_000),
    }
