"""What travels through a map: some units, the batch that a lane makes of them, and what comes back of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Units:
    """Units with their numbers, which rise; `alone`: each has to run by itself, see `Scheduler.lose`."""

    numbers: Sequence[int]
    values: Sequence[Any]
    alone: bool = False

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, part: slice) -> Units:
        return Units(self.numbers[part], self.values[part], self.alone)


@dataclass(frozen=True, eq=False)
class Batch:
    """Units that a lane works on as one job; `with_function`: a large function goes along, see `Pickled`."""

    lane: int
    units: Units
    with_function: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a batch: of its first `done` units, those at the places `failed` raised.

    `payload` is read by whoever packed the batch. `size` in bytes, 0 when nothing was packed; `seconds` are
    those of the units alone. A batch may come back short. `ends`: the last of `failed` ends the map.
    `function_missing`: nothing was done, since the worker does not have the function.
    """

    done: int
    failed: Sequence[int]
    seconds: float
    payload: Any = None
    size: int = 0
    ends: bool = False
    function_missing: bool = False
