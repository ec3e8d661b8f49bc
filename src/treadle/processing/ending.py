"""How a run ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from treadle.domain.result import Counters
from treadle.errors import StoppedError
from treadle.processing.account import named_counts
from treadle.telemetry import Outcome, RunEnded
from treadle.termination import Terminated


@dataclass
class Ending:
    """What the finalisers will report; "failed" until something else is known.

    `seconds` counts from the creation of this record and is set by `event`.
    """

    run_id: str
    outcome: Outcome = "failed"
    counters: Counters | None = None
    error: str | None = None
    account: str | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    _started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """The block that is the work; being interrupted or stopped cancels it, an error fails it."""
        try:
            yield
            self.outcome = "finished"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | Terminated | StoppedError):
                self.outcome = "cancelled"
            self.error = f"{type(error).__name__}: {error}"
            raise

    def event(self, notes: tuple[str, ...] = ()) -> RunEnded:
        """The last event of the run; `notes` is what went wrong with telling about it."""
        self.seconds = time.perf_counter() - self._started
        counts = named_counts(self.counters) if self.counters is not None else {}
        return RunEnded(
            self.run_id, self.outcome, counts, self.seconds, self.error, account=self.account, notes=notes
        )
