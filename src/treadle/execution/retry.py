"""When a step that failed is tried again."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from treadle.errors import ArgumentError


@dataclass(frozen=True)
class Retry:
    """Try a step up to `attempts` times in all, `delay` seconds apart, each time `factor` times longer.

    A delay is never longer than `max_delay` seconds, and is drawn from within a fraction `jitter` of it, so
    that many steps that failed together do not come back together. Only errors of the types `on` are tried
    again. A worker that was lost is no fault of the step: it has a budget of its own, `losses`.

    Raises:
        ArgumentError: a number that is out of range, or `on` is no type of error nor a tuple of them.
    """

    attempts: int = 3
    delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 60.0
    jitter: float = 0.1
    on: type[BaseException] | tuple[type[BaseException], ...] = (Exception,)
    losses: int = 3

    def __post_init__(self) -> None:
        _check("attempts", self.attempts, type(self.attempts) is int and self.attempts >= 1, "1 or more")
        _check("losses", self.losses, type(self.losses) is int and self.losses >= 0, "0 or more")
        _check("delay", self.delay, _in_range(self.delay, 0), "seconds, 0 or more")
        _check("factor", self.factor, _in_range(self.factor, 1), "1 or more")
        _check("max_delay", self.max_delay, _in_range(self.max_delay, 0), "seconds, 0 or more")
        _check("jitter", self.jitter, _in_range(self.jitter, 0, 1), "a fraction from 0 to 1")
        _check("on", self.on, _are_errors(self.on), "a type of error, or a tuple of them")

    def delay_before(self, attempt: int, chance: float) -> float:
        """Seconds to wait before attempt number `attempt` (the first retry is 2); `chance` is from 0 to 1."""
        try:
            full = min(self.delay * self.factor ** (attempt - 2), self.max_delay)
        except OverflowError:  # no float is that long
            full = self.max_delay if self.delay else 0.0
        return full * (1 + self.jitter * (2 * chance - 1))


def _in_range(number: object, least: float, most: float = sys.float_info.max) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and least <= number <= most


def _are_errors(kinds: object) -> bool:
    listed = kinds if isinstance(kinds, tuple) else (kinds,)
    return all(isinstance(each, type) and issubclass(each, BaseException) for each in listed)


def _check(name: str, found: object, fine: bool, expected: str) -> None:
    if not fine:
        raise ArgumentError(f"retry: {name}: expected {expected}, got {found!r}")


NEVER = Retry(attempts=1)
"""What holds for a step that says nothing: one attempt; a lost worker is tried again all the same."""
