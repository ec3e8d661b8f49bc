"""Takes the units from the iterator that the caller gave, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from itertools import islice
from time import perf_counter
from typing import Any

_WHILE_S = 0.005


class Source:
    """Iterates over `units`, in the thread that pulls. `error` is what they raised, which is their end."""

    def __init__(self, units: Iterable[Any]) -> None:
        self._units = iter(units)
        self._length = len(units) if isinstance(units, Sized) else None
        self.pulled = 0
        self.ended = False
        self.error: Exception | None = None

    @property
    def total(self) -> int | None:
        """How many units there are in all; None while it is not known."""
        return self.pulled if self.ended else self._length

    def pull(self, most: float) -> list[Any]:
        """At most so many; fewer when they come slowly, so that the first can be worked on."""
        found: list[Any] = []
        until = perf_counter() + _WHILE_S
        step = 1
        while len(found) < most and not self.ended:
            self._extend(found, int(min(step, most - len(found))))
            if perf_counter() > until:
                break
            step *= 2
        self.pulled += len(found)
        return found

    def list_all(self) -> list[Any]:
        """All that there are, or all up to the error."""
        found: list[Any] = []
        self._extend(found, None)
        self.ended = True
        self.pulled += len(found)
        return found

    def _extend(self, found: list[Any], count: int | None) -> None:
        before = len(found)
        try:
            found.extend(islice(self._units, count))  # when it raises, what came before is kept
        except Exception as error:  # noqa: BLE001 - raised in its place, after the results before it
            self.error = error
            self.ended = True
        else:
            self.ended = count is None or len(found) - before < count
