"""Kill a process at its n-th operation on files."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any


def ends_before(operation: int, names: Sequence[str], act: Callable[[], object]) -> bool:
    """Do `act` in a child, killed in place of the operation of that number, from 0; whether it ended before.

    `names` are the functions of `os` that count.
    """
    child = os.fork()
    if child == 0:
        left = [operation]
        for name in names:
            _patch(name, left)
        act()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"operation {operation}: ended by {status}"
    return status == 0


def _patch(name: str, left: list[int]) -> None:
    done = getattr(os, name)

    def operation(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done(*args, **options)

    setattr(os, name, operation)
