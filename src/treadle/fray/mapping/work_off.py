"""What a lane does with a batch: call the function with one unit after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from treadle.fray.mapping.pace import LIMIT_S
from treadle.fray.running_job import stop_requested

_LOOK_S = 0.001


@dataclass
class Found:
    """Results, with None for units that raised, and those errors by their place in the batch."""

    results: list[Any] = field(default_factory=list)
    errors: dict[int, BaseException] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ends(self) -> bool:
        """Whether one of them is no `Exception`, which is never taken for a result."""
        return any(not isinstance(each, Exception) for each in self.errors.values())


def work_off(fn: Callable[[Any], Any], units: Sequence[Any], *, keep_going: bool) -> Found:
    """Call `fn` with the units until all are done, one raises, time is up, or the job is asked to stop.

    With `keep_going` a unit that raises is one like the others. What is no `Exception` ends the batch anyhow;
    when the job was asked to stop it ends the job.
    """
    found = Found()
    results, began = found.results, perf_counter()
    look = began + _LOOK_S
    for unit in units:
        try:
            results.append(fn(unit))
        except BaseException as error:  # noqa: BLE001 - raised in its place by the one who asked
            if _ends(found, error, keep_going):
                break
        if (now := perf_counter()) > look:
            look = now + _LOOK_S
            if now > began + LIMIT_S or stop_requested():
                break
    found.seconds = perf_counter() - began
    return found


def _ends(found: Found, error: BaseException, keep_going: bool) -> bool:
    ordinary = isinstance(error, Exception)
    if not ordinary and stop_requested():
        raise error
    found.errors[len(found.results)] = error
    found.results.append(None)
    return not (keep_going and ordinary)
