"""What is run: functions that other processes can import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path


def nothing(_: object = None) -> None:
    pass


def millisecond(_: object) -> None:
    time.sleep(0.001)


def hundred_bytes(number: int) -> bytes:
    return number.to_bytes(100, "big")


def each_of(fn: Callable[[object], object], units: Iterable[object]) -> list[object]:
    return [fn(unit) for unit in units]


def die_once(unit: tuple[str, int]) -> float:
    """Kill the worker at the first call, and tell at the second how many seconds later it is."""
    folder, number = unit
    mark = Path(folder, str(number))
    if mark.exists():
        return time.time() - float(mark.read_text())
    mark.with_suffix(".new").write_text(repr(time.time()))
    mark.with_suffix(".new").rename(mark)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it is dead by now")
