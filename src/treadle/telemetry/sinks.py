"""Where events go: nowhere, into a file of JSON lines, or into a list.

A sink may be used by several threads. It raises when it cannot keep an event, and no caller hides that.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from treadle.errors import RunError
from treadle.kernel.unwind import Unwind
from treadle.telemetry.events import Event, ResourcesSampled, RunStarted, UnitDone

_SECRET_WORDS = ("token", "secret", "password", "key")
REDACTED = "[redacted]"


class Sink(Protocol):
    """Takes events, in the order in which they are emitted."""

    def emit(self, event: Event) -> None:
        """Take one event. Raises RunError when it cannot be kept."""

    def close(self) -> None:
        """Let go of what is held; harmless the second time."""


class NullSink:
    """Forgets everything."""

    def emit(self, event: Event) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class RecordingSink:
    """Keeps the events in a list, for tests and for a caller that looks at them afterwards."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = False

    def emit(self, event: Event) -> None:
        """Append the event."""
        self.events.append(event)

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


class LogSink:
    """Appends one JSON object a line to a file: "event", "time", and the fields of the event.

    The time is in seconds since 1970, UTC. Each line is one unbuffered write, so a killed run leaves all the
    lines it emitted. A param whose name contains token, secret, password or key is written without its value.
    Raises RunError when the file cannot be opened.
    """

    def __init__(self, path: str | Path, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._clock = clock
        self._lock = threading.Lock()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise RunError(f"cannot write the log {path}: {error}") from error

    def emit(self, event: Event) -> None:
        """Append one line. Raises RunError with the path when that fails, or after `close`."""
        record = {"event": type(event).__name__, "time": round(self._clock(), 6), **_fields(event)}
        # A surrogate, as in an argument that is not UTF-8, is written as its JSON escape.
        text = f"{json.dumps(record, ensure_ascii=False, default=str)}\n"
        line = text.encode("utf-8", "backslashreplace")
        with self._lock:
            try:
                written = self._file.write(line)
            except (OSError, ValueError) as error:
                raise RunError(f"cannot write the log {self._path}: {error}") from error
        if written != len(line):
            raise RunError(f"cannot write the log {self._path}: {written} of {len(line)} bytes were taken")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


def fork(*sinks: Sink) -> Sink:
    """A sink that gives each event to all of `sinks`, in this order; others close them.

    A later one gets the event also when an earlier one cannot keep it; the first error is raised.
    """
    return _Fork(sinks)


@dataclass(frozen=True)
class _Fork:
    sinks: tuple[Sink, ...]

    def emit(self, event: Event) -> None:
        with Unwind() as unwind:
            for sink in reversed(self.sinks):
                unwind.push(sink.emit, event)

    def close(self) -> None:
        pass


def _fields(event: Event) -> dict[str, object]:
    """What a log says of an event: all, but for what would fill it (all metrics at each sample)."""
    fields: dict[str, object] = asdict(event)
    if isinstance(event, RunStarted):
        fields["params"] = _redacted(event.params)
    elif isinstance(event, ResourcesSampled):
        del fields["metrics"]
    elif isinstance(event, UnitDone):
        del fields["report"]
        if event.report is not None:
            fields |= {"worker": event.report.worker, "stage_seconds": event.report.delta.stage_seconds}
    return fields


def _redacted(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: REDACTED if _is_secret(name) else _redact(value) for name, value in fields.items()}


def _redact(value: object) -> object:
    if isinstance(value, Mapping):
        return _redacted({str(name): inner for name, inner in value.items()})
    if isinstance(value, (list, tuple)):
        return [_redact(each) for each in value]
    return value


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_WORDS)
