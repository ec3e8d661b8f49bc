"""What a run of a manifest tells: on a terminal a bar for each phase; what went wrong beside its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from treadle.integrations.cli.console import counted
from treadle.telemetry import (
    Event,
    NullSink,
    PhaseStarted,
    RowsAnswered,
    RunEnded,
    Sink,
    UnitDone,
    UnitSkipped,
)


@contextmanager
def live_progress(console: Console) -> Iterator[Sink]:
    """A sink that shows the units of a run as they end, while the block runs, where somebody looks."""
    if not console.is_terminal:
        yield NullSink()
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
        elif isinstance(event, RowsAnswered) and event.phase in self._tasks:
            self._progress.update(self._tasks[event.phase], description=_answered(event))

    def close(self) -> None:
        """The progress is closed by its block."""


def _answered(event: RowsAnswered) -> str:
    """The rows beside the bar, which itself counts units: it stands still for as long as a file takes."""
    seconds = event.engine_seconds
    pace = f", {event.new_tokens / seconds:,.0f} tokens/s" if seconds else ""
    return f"{event.phase}: {counted(event.rows, 'row')} answered{pace}"


class RunNotes:
    """Keeps what went wrong with a run without failing it, such as metrics that could not be sent."""

    def __init__(self) -> None:
        self.told: tuple[str, ...] = ()

    def emit(self, event: Event) -> None:
        """Look for the end of the run, which has the notes."""
        if isinstance(event, RunEnded):
            self.told = event.notes

    def close(self) -> None:
        """Nothing is held."""
