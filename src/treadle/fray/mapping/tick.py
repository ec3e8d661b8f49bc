"""How far a map has come, told now and then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

EVERY_S = 0.1


@dataclass(frozen=True)
class Tick:
    """Counts of units; `running` is those of batches on their way, `total` None while it is not known.

    `lost` counts workers that were lost. `seconds` since the map began.
    """

    done: int
    failed: int
    running: int
    total: int | None
    lost: int
    seconds: float


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
