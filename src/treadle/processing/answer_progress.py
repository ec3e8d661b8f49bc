"""How far a run of type `generate` is: a unit may be a file that takes hours, so its rows are told."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from treadle.engine import Completion
from treadle.telemetry import RowsAnswered, Sink


class AnswerProgress:
    """Tells a sink how many rows are answered: with the first, then every `interval` seconds at most.

    Args:
        sink: gets `RowsAnswered`.
        run_id: the run.
        interval: seconds.
        clock: seconds since any moment.
    """

    def __init__(
        self, sink: Sink, run_id: str, interval: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sink = sink
        self._interval = interval
        self._clock = clock
        self._now = RowsAnswered(run_id, 0, 0, 0.0)
        self._told = 0
        self._due = -math.inf

    def take(self, completion: Completion) -> None:
        """Count an answer; a request that ended with an error has none."""
        if completion.finish_reason == "error":
            return
        now = self._now
        seconds = round(now.engine_seconds + completion.seconds, 6)
        tokens = now.new_tokens + len(completion.token_ids)
        self._now = RowsAnswered(now.run_id, now.rows + 1, tokens, seconds, now.phase)
        if (moment := self._clock()) >= self._due:
            self._due = moment + self._interval
            self._tell()

    def end(self) -> None:
        """Tell what is not told yet."""
        if self._told < self._now.rows:
            self._tell()

    def _tell(self) -> None:
        self._sink.emit(self._now)
        self._told = self._now.rows
