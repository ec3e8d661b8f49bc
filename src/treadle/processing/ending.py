"""How a run ends, and where its events go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from treadle.domain.result import Counters
from treadle.errors import StoppedError
from treadle.kernel.unwind import Unwind
from treadle.processing.account import named_counts
from treadle.telemetry import Event, LogSink, NullSink, Outcome, RunEnded, Sink


@dataclass
class Ending:
    """What the finalisers will report; "failed" until something else is known.

    `seconds` counts from the creation of this record and is set by `event`.
    """

    run_id: str
    outcome: Outcome = "failed"
    counters: Counters | None = None
    error: str | None = None
    seconds: float = 0.0
    _started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """The block that is the work; being interrupted or stopped cancels it, an error fails it."""
        try:
            yield
            self.outcome = "finished"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | StoppedError):
                self.outcome = "cancelled"
            self.error = f"{type(error).__name__}: {error}"
            raise

    def event(self) -> RunEnded:
        """The last event of the run."""
        self.seconds = time.perf_counter() - self._started
        counts = named_counts(self.counters) if self.counters is not None else {}
        return RunEnded(self.run_id, self.outcome, counts, self.seconds, self.error)


def open_events(log_path: str | None, sink: Sink | None, unwind: Unwind) -> Sink:
    """The sink of the caller and, beside it, the log at `log_path`, closed when `unwind` is left."""
    given = sink if sink is not None else NullSink()
    if log_path is None:
        return given
    log = LogSink(log_path)
    unwind.push(log.close)
    return _Fork(given, log)


@dataclass(frozen=True)
class _Fork:
    """Gives each event to two sinks, which others close."""

    first: Sink
    second: Sink

    def emit(self, event: Event) -> None:
        with Unwind() as unwind:  # the second gets the event also when the first cannot keep it
            unwind.push(self.second.emit, event)
            self.first.emit(event)

    def close(self) -> None:
        pass
