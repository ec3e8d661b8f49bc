"""The trace of a run in the Trace Event Format of Chrome: https://ui.perfetto.dev opens it.

The file is a JSON array that is whole after each event: the next one is written over the closing bracket.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from treadle.errors import RunError
from treadle.kernel.unwind import Unwind
from treadle.telemetry.events import (
    Event,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunStarted,
    UnitDone,
    UnitSkipped,
)
from treadle.telemetry.meter import UnitReport

_RUN = "run"
_CLOSING = b"\n]\n"


class TraceSink:
    """Writes the run and its phases, the units in a lane for each worker, and their stages in lanes below.

    Times are microseconds since 1970, by the clock of the host that measured them. Raises RunError when the
    file cannot be opened or written.
    """

    def __init__(self, path: str | Path, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._clock = clock
        self._lock = threading.Lock()
        self._end = 1  # where the closing bracket is
        self._phases: dict[str, float] = {}  # those under way, with when they began
        self._lanes: dict[str, int] = {}
        self._step = ""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise RunError(f"cannot write the trace {path}: {error}") from error
        with Unwind() as unwind:
            unwind.push(self.close)
            self._write(b"[", 0)
            unwind.release()

    def emit(self, event: Event) -> None:
        """Add the spans that end with the event. Raises RunError with the path when that fails."""
        with self._lock:
            for record in self._records(event, self._clock()):
                line = (",\n" if self._end > 1 else "\n") + json.dumps(record, default=str)
                self._write(line.encode(), self._end)
                self._end += len(line)

    def close(self) -> None:
        """Close the file; harmless the second time."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _records(self, event: Event, now: float) -> Iterator[dict[str, Any]]:
        match event:
            case RunStarted():
                self._step = event.step_id
                yield _named("process_name", f"{event.step_id} ({event.run_type})", 0)
                yield from self._first_of(_RUN)
            case PhaseStarted():
                self._phases[event.phase] = now
            case PhaseEnded():
                since = self._phases.pop(event.phase, now - event.seconds)
                yield from self._span(f"phase {event.phase}", since, now, _RUN)
            case UnitSkipped():
                yield from self._instant(f"skipped {event.unit}", now, phase=event.phase)
            case UnitDone(report=UnitReport() as report):
                yield from self._unit(event, report)
            case RunEnded():
                yield from self._run(event, now)

    def _run(self, event: RunEnded, now: float) -> Iterator[dict[str, Any]]:
        for phase, since in self._phases.items():
            yield from self._span(f"phase {phase}", since, now, _RUN, outcome=event.outcome)
        self._phases.clear()
        facts = {"outcome": event.outcome, "error": event.error, **event.counters}
        yield from self._span(f"run {self._step}", now - event.seconds, now, _RUN, **facts)

    def _unit(self, event: UnitDone, report: UnitReport) -> Iterator[dict[str, Any]]:
        worker, began = f"worker {report.worker}", report.started
        facts = {"phase": event.phase, "bytes": event.bytes, **event.counters}
        yield from self._span(f"unit {event.unit}", began, began + report.seconds, worker, **facts)
        for each in report.spans:
            lane = f"{worker} {each.stage}"
            yield from self._span(
                each.stage, began + each.start, began + each.end, lane, busy_seconds=each.busy
            )

    def _span(
        self, name: str, start: float, end: float, lane: str, **facts: object
    ) -> Iterator[dict[str, Any]]:
        yield from self._first_of(lane)
        times = {"ts": round(start * 1e6), "dur": round((end - start) * 1e6)}
        yield {"name": name, "ph": "X", **times, "pid": 1, "tid": self._lanes[lane], "args": facts}

    def _instant(self, name: str, now: float, **facts: object) -> Iterator[dict[str, Any]]:
        yield from self._first_of(_RUN)
        at = {"ts": round(now * 1e6), "pid": 1, "tid": self._lanes[_RUN]}
        yield {"name": name, "ph": "i", "s": "t", **at, "args": facts}

    def _first_of(self, lane: str) -> Iterator[dict[str, Any]]:
        """The name of a lane that nothing was in yet."""
        if lane not in self._lanes:
            self._lanes[lane] = len(self._lanes) + 1
            yield _named("thread_name", lane, self._lanes[lane])

    def _write(self, line: bytes, at: int) -> None:
        """One write, so that a run which is killed leaves a whole array; a disk that is full does as well."""
        whole = line + _CLOSING
        try:
            if os.pwrite(self._file, whole, at) == len(whole):
                return
            os.pwrite(self._file, _CLOSING, at)
            os.ftruncate(self._file, at + len(_CLOSING))
        except OSError as error:
            raise RunError(f"cannot write the trace {self._path}: {error}") from error
        raise RunError(f"cannot write the trace {self._path}: the disk took a part of {len(whole)} bytes")


def _named(kind: str, name: str, lane: int) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 1, "tid": lane, "args": {"name": name}}
