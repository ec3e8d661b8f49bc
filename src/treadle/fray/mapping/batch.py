"""Some units on their way: numbers and values, and the lane that works on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Run:
    """Units in rising order of their numbers; `alone`: one of them may have killed a worker."""

    numbers: Sequence[int]
    values: Sequence[Any]
    alone: bool = False

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, part: slice) -> Run:
        return Run(self.numbers[part], self.values[part], self.alone)


@dataclass(frozen=True, eq=False)
class Batch:
    """A run that a lane works on as one job; `whole`: the function goes with it, see `Parcels`."""

    lane: int
    run: Run
    whole: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a batch: of its first `done` units, those at the places `failed` raised.

    `payload` is read by whoever packed the batch. `size` in bytes, 0 when nothing was packed; `seconds` are
    those of the units alone. A batch may come back short. `ends`: the last of `failed` ends the map.
    `strange`: the worker does not know the function.
    """

    done: int
    failed: Sequence[int]
    seconds: float
    payload: Any = None
    size: int = 0
    ends: bool = False
    strange: bool = False
