"""How one piece of work ended: exactly one of four."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    """It ran now and gave `value`."""

    value: object = None


@dataclass(frozen=True)
class Cached:
    """It was done before; `value` is what it gave then."""

    value: object = None


@dataclass(frozen=True)
class Failed:
    """It ran and raised `error`."""

    error: BaseException


@dataclass(frozen=True)
class Skipped:
    """It never ran, because of the failures named."""

    because: tuple[str, ...]


Outcome = Done | Cached | Failed | Skipped
