"""How far a map has come, told now and then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

EVERY_S = 0.1


@dataclass(frozen=True)
class Tick:
    """Counts of units, but for the last two."""

    done: int
    """Those that have returned, also where the results were not asked for yet."""
    failed: int
    """Those that have raised, or were given up."""
    running: int
    """Those that were handed to workers, in batches: most of them wait for the one before them."""
    total: int | None
    """All; None until the iterator of units has come to its end."""
    lost: int
    """How many workers were lost."""
    seconds: float
    """Since the map began."""


class Ticker:
    """Calls `on_tick` every `EVERY_S` at most."""

    def __init__(self, on_tick: Callable[[Tick], object] | None, count: Callable[[float], Tick]) -> None:
        self._on_tick = on_tick
        self._count = count
        self._began = monotonic()
        self._due = self._began + EVERY_S

    @property
    def wanted(self) -> bool:
        """Whether there is somebody to tell."""
        return self._on_tick is not None

    def left(self) -> float | None:
        """Seconds until the next one is due; None when nobody is told."""
        return max(0.0, self._due - monotonic()) if self.wanted else None

    def tell(self, *, always: bool = False) -> None:
        """Tell, if it is due."""
        if self._on_tick is not None and (always or monotonic() >= self._due):
            self._due = monotonic() + EVERY_S
            self._on_tick(self._count(monotonic() - self._began))
