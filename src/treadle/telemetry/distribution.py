"""How often a value fell where: counts by bucket that add with `+`, so that workers share no histogram."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from treadle.errors import ArgumentError

UNIT_SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
STAGE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
BATCH_ROWS = (1.0, 8.0, 64.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 16384.0, 65536.0)
QUEUE_ITEMS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


@dataclass(frozen=True)
class Distribution:
    """Counts of values by bucket: `counts[i]` have `bounds[i-1] < value <= bounds[i]`, the last is above all.

    `total` is the sum of the values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def of(cls, bounds: tuple[float, ...], values: Iterable[float] = ()) -> Distribution:
        """The distribution of `values`."""
        tally = Tally(bounds)
        for value in values:
            tally.observe(value)
        return tally.distribution()

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def __add__(self, other: Distribution) -> Distribution:
        if self.bounds != other.bounds:
            raise ArgumentError(
                f"distributions of other buckets do not add: {self.bounds} and {other.bounds}"
            )
        counts = tuple(mine + its for mine, its in zip(self.counts, other.counts, strict=True))
        return Distribution(self.bounds, counts, self.total + other.total)


class Tally:
    """A distribution in the making. For one thread at a time: who shares it holds a lock."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def distribution(self) -> Distribution:
        """What was observed so far."""
        return Distribution(self._bounds, tuple(self._counts), self.total)
