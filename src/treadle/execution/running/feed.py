"""Steps that come one after the other: taken from their iterator in parts, no further ahead than needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeAlias

from treadle.execution.step_spec import StepSpec
from treadle.kernel import carry

PART = 1_000
"""Steps that are handed over together, at most."""
_PATIENCE = 0.02

Part: TypeAlias = "list[StepSpec] | BaseException | None"


class Feed:
    """Takes steps from `steps` in a thread of its own, and calls `deliver` there with each part.

    A part is handed over for each `ask`. The last delivery is None, or what the iterator raised.
    """

    def __init__(self, steps: Iterator[StepSpec], deliver: Callable[[Part], object]) -> None:
        self._steps = steps
        self._deliver = deliver
        self._asked = threading.Semaphore(0)
        self._stopped = False
        threading.Thread(target=carry(self._run), name="treadle-feed", daemon=True).start()

    def ask(self) -> None:
        """Let the next part come."""
        self._asked.release()

    def stop(self) -> None:
        """Nothing more is wanted."""
        self._stopped = True
        self._asked.release()

    def _run(self) -> None:
        while self._asked.acquire() and not self._stopped:
            try:
                part = self._next_part()
            except BaseException as error:  # noqa: BLE001 - raised again by the run that asked
                self._deliver(error)
                return
            self._deliver(part or None)
            if not part:
                return

    def _next_part(self) -> list[StepSpec]:
        """Up to a thousand steps, fewer when they come slowly: what is there can run meanwhile."""
        part: list[StepSpec] = []
        late = time.monotonic() + _PATIENCE
        for step in islice(self._steps, PART):
            part.append(step)
            if time.monotonic() > late:
                break
        return part
