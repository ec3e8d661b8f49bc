"""How many units go into a batch, and how far the map looks ahead.

A batch takes about `TARGET_S`, so that neither handing it over costs much nor the others wait for it at the
end. The first one has one unit; how long units take is learnt from then on.
"""

from __future__ import annotations

TARGET_S = 0.03
LIMIT_S = 0.05
"""A batch that takes longer comes back with what it has done, in seconds."""

LARGEST = 2048
"""Units in a batch at most."""

_NEGLIGIBLE_S = 0.002
_GROWTH = 8
_BATCH_BYTES = 4 << 20
_WINDOW_BYTES = 64 << 20
_LEAST_AHEAD = 32


class Pace:
    """For `lanes` lanes."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self.size = 1
        self._seconds = 0.0
        self._bytes = 0.0

    def learn(self, units: int, seconds: float, size: int) -> None:
        """A batch of so many units took `seconds`, and `size` bytes there and back."""
        self._seconds = _mean(self._seconds, seconds / units)
        self._bytes = _mean(self._bytes, size / units)
        wanted = min(TARGET_S / (self._seconds or 1e-9), _BATCH_BYTES / (self._bytes or 1e-9))
        grown = _GROWTH * max(self.size, units)
        self.size = max(1, int(min(wanted, grown, LARGEST)))

    def next_size(self, waiting: int) -> int:
        """Units of the next batch, when so many wait: less towards the end, for all lanes to end together."""
        negligible = int(_NEGLIGIBLE_S / self._seconds) if self._seconds else 1
        fair = -(-waiting // (2 * self._lanes))
        return max(1, min(self.size, max(fair, negligible)))

    def window(self) -> int:
        """Units that may be on their way or done, beyond those that were asked for."""
        ahead = self._lanes * max(_LEAST_AHEAD, 4 * self.size)
        fits = int(_WINDOW_BYTES / self._bytes) if self._bytes else ahead
        return max(2 * self._lanes, min(ahead, fits))

    def wanted(self, waiting: int) -> int:
        """How many more units should wait; 0 while there are enough for two batches of each lane."""
        if waiting >= max(self._lanes, 2 * self._lanes * self.size):
            return 0
        return max(self._lanes * _LEAST_AHEAD // 2, 3 * self._lanes * self.size) - waiting


def _mean(former: float, found: float) -> float:
    return found if not former else (former + found) / 2
