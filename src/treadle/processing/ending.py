"""How a run ends, and who is told of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from treadle.domain.result import Counters
from treadle.kernel.unwind import Unwind
from treadle.manifest import Manifest
from treadle.processing.account import named_counts
from treadle.processing.compile import below
from treadle.processing.context import RunContext
from treadle.telemetry import Event, LogSink, NullSink, Outcome, RunEnded, Sink


@dataclass
class Ending:
    """What the finalisers will say: "failed", until something better is known.

    `seconds` counts from the making of this record and stands from `event` on.
    """

    run_id: str
    outcome: Outcome = "failed"
    counters: Counters | None = None
    error: str | None = None
    seconds: float = 0.0
    _started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """The block that is the work; an interrupt cancels it, anything else raised fails it."""
        try:
            yield
            self.outcome = "finished"
        except BaseException as error:
            self.outcome = "cancelled" if isinstance(error, KeyboardInterrupt) else "failed"
            self.error = f"{type(error).__name__}: {error}"
            raise

    def event(self) -> RunEnded:
        """The last event of the run."""
        self.seconds = time.perf_counter() - self._started
        counts = named_counts(self.counters) if self.counters is not None else {}
        return RunEnded(self.run_id, self.outcome, counts, self.seconds, self.error)


def open_events(manifest: Manifest, ctx: RunContext, sink: Sink | None, unwind: Unwind) -> Sink:
    """The sink of the caller and, beside it, the log that the manifest names, closed when `unwind` is left.

    A relative path of the log counts from `ctx.output_root`.
    """
    given = sink if sink is not None else NullSink()
    if manifest.metrics.log is None:
        return given
    log = LogSink(below(ctx.output_root, manifest.metrics.log))
    unwind.push(log.close)
    return _Fork(given, log)


@dataclass(frozen=True)
class _Fork:
    """Gives each event to two sinks, which others close."""

    first: Sink
    second: Sink

    def emit(self, event: Event) -> None:
        self.first.emit(event)
        self.second.emit(event)

    def close(self) -> None:
        pass
