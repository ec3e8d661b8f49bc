"""Results come in any order, and are given in that of the units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MISSING = object()


class ReorderBuffer:
    """Keeps what has come early until its turn. Not safe for use by several threads."""

    def __init__(self) -> None:
        self.next = 0
        self._stretches: dict[
            int, list[Any]
        ] = {}  # by the number of the first; most results come so, and stay so
        self._single: dict[int, Any] = {}
        self._errors: dict[int, BaseException] = {}

    def put(self, numbers: Sequence[int], results: list[Any]) -> None:
        """The results of these units, one for each."""
        if isinstance(numbers, range) and numbers.step == 1 and results:
            self._stretches[numbers.start] = results
        else:
            self._single.update(zip(numbers, results, strict=True))

    def put_error(self, number: int, error: BaseException) -> None:
        """The map ends in front of this unit, with the error."""
        self._errors.setdefault(number, error)

    def ready(self, most: int) -> list[Any]:
        """Results that are next in order, about `most` if there are so many; they are given once."""
        found: list[Any] = []
        while len(found) < most:
            if (stretch := self._stretches.pop(self.next, None)) is not None:
                found = found + stretch if found else stretch
                self.next += len(stretch)
            elif (result := self._single.pop(self.next, _MISSING)) is not _MISSING:
                found.append(result)
                self.next += 1
            else:
                break
        return found

    def error(self) -> BaseException | None:
        """What stands at the next place in the place of a result."""
        return self._errors.get(self.next)
