"""How far a manifest run is, on a terminal: a bar for each phase, by bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from treadle.telemetry import Event, PhaseStarted, Sink, UnitDone, UnitSkipped


@contextmanager
def live_progress(console: Console) -> Iterator[Sink | None]:
    """A sink that shows the units of a run as they end, while the block runs; None where nobody looks."""
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bars(progress)


class _Bars:
    """Takes the events of one run."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def emit(self, event: Event) -> None:
        """Move the bar of the event's phase."""
        if isinstance(event, PhaseStarted):
            self._tasks[event.phase] = self._progress.add_task(event.phase, total=event.units)
        elif isinstance(event, UnitDone | UnitSkipped) and event.phase in self._tasks:
            self._progress.advance(self._tasks[event.phase])

    def close(self) -> None:
        """The progress is closed by its block."""
