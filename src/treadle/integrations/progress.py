"""Shows the progress of a run of steps, and a summary at the end.

On a terminal, running steps are listed at the bottom with their time, and each step that ends adds a line
above. Elsewhere there are only plain lines, one when a step starts and one when it ends. What steps print
themselves is shown in both cases. Use it as a context manager around the run, and pass it to the run as its
reporter:

    with Progress() as progress:
        run(handle, reporter=progress)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from treadle.execution.report import (
    CodeChanged,
    Event,
    RunEnded,
    RunPlanned,
    RunStopping,
    StepEnded,
    StepStarted,
)
from treadle.kernel.outcome import Cached, Done, Failed, Outcome, Skipped

ROWS = 40
"""Steps that the table at the end names; of a larger run those that failed or were skipped, then the
longest."""

_WORDS: dict[type[Outcome], tuple[str, str]] = {
    Done: ("done", "green"),
    Cached: ("cached", "dim"),
    Failed: ("failed", "bold red"),
    Skipped: ("skipped", "yellow"),
}
"""What each outcome is called, and its style on a terminal."""


class Progress:
    """A reporter that draws on `console` (standard error when None); `clock` gives seconds.

    Events come one at a time; the foot is drawn by another thread, so what it reads is replaced, never
    changed.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._draws = self._console.is_terminal and not self._console.is_dumb_terminal
        self._clock = clock
        self._total = 0
        self._running: dict[str, tuple[str, float]] = {}
        self._ended: dict[str, StepEnded] = {}
        self._spinner = Spinner("dots")
        self._live = Live(console=self._console, get_renderable=lambda: self, transient=True)

    def __enter__(self) -> Self:
        if self._draws:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take in one event of the run."""
        match event:
            case RunPlanned():
                self._plan(event)
            case CodeChanged():
                self._say(f"{event.name}: its code has changed; the former result is served", "yellow")
            case StepStarted():
                self._start(event)
            case StepEnded():
                self._end(event)
            case RunStopping():
                self._say(_stopping(event), "yellow")
            case RunEnded():
                self._sum_up(event)

    def _plan(self, event: RunPlanned) -> None:
        self._total = event.total
        self._say(f"{_steps(event.total)}: {event.cached} cached, {event.to_run} to run")

    def _start(self, event: StepStarted) -> None:
        self._running = {**self._running, event.id: (event.name, self._clock())}
        if not self._draws:
            self._say(f"{self._place()} {event.name}  started")

    def _end(self, event: StepEnded) -> None:
        self._running = {key: value for key, value in self._running.items() if key != event.id}
        self._ended = {**self._ended, event.id: event}
        word, style = _WORDS[type(event.outcome)]
        took, why = _seconds(event), self._why(event.outcome)
        what = f"{word}{took and f' in {took}'}{why and f', {why}'}"
        self._say(f"{self._place()} {event.name}  {what}", style)

    def _sum_up(self, event: RunEnded) -> None:
        self._live.stop()
        if any(not isinstance(each.outcome, Cached) for each in self._ended.values()):
            self._console.print(self._table())
        kinds = [type(each) for each in event.outcomes.values()]
        told = ", ".join(f"{kinds.count(kind)} {word}" for kind, (word, _) in _WORDS.items() if kind in kinds)
        self._say(f"{_steps(len(kinds))} in {event.seconds:.1f} s: {told or 'nothing to do'}")

    def _say(self, line: str, style: str = "") -> None:
        # Text, not markup: a message may hold brackets. Soft wrap: a long line is one line in a log.
        self._console.print(Text(line, style=style), soft_wrap=True)

    def _place(self) -> str:
        width = len(str(self._total))
        return f"[{len(self._ended):>{width}}/{self._total or '?'}]"

    def _why(self, outcome: Outcome) -> str:
        match outcome:
            case Failed(error):
                return f"{type(error).__name__}: {error}"
            case Skipped(because):
                return "because of " + ", ".join(
                    self._ended[key].name if key in self._ended else key for key in because
                )
        return ""

    def __rich__(self) -> RenderableType:
        grid = Table.grid(padding=(0, 1))
        for name, started in self._running.values():
            grid.add_row(self._spinner, Text(name), Text(f"{self._clock() - started:.0f} s", style="dim"))
        ended = self._ended
        cached = sum(isinstance(each.outcome, Cached) for each in ended.values())
        count = Text(
            f"{len(ended)}/{self._total or '?'} ended, {cached} cached, {len(self._running)} running"
        )
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(
                total=max(self._total, 1),
                completed=len(ended),
                width=30,
                complete_style="cyan",
                finished_style="green",
            ),
            count,
        )
        return Group(grid, bar) if self._running else bar

    def _table(self) -> Table:
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("step", overflow="fold")
        table.add_column("outcome")
        table.add_column("time", justify="right")
        if any(self._why(each.outcome) for each in self._ended.values()):
            table.add_column("why", overflow="fold")
        for each in _worth_naming(tuple(self._ended.values())):
            cells = (Text(each.name), _outcome(each), Text(_seconds(each)), Text(self._why(each.outcome)))
            table.add_row(*cells[: len(table.columns)])
        return table


def _worth_naming(ended: tuple[StepEnded, ...]) -> tuple[StepEnded, ...]:
    """All of them in their order; of more than `ROWS` those that failed or were skipped, and the longest."""
    if len(ended) <= ROWS:
        return ended
    lost = [each for each in ended if isinstance(each.outcome, Failed | Skipped)]
    others = sorted((each for each in ended if each not in lost), key=lambda each: -each.seconds)
    return (*lost, *others[: max(0, ROWS - len(lost))])


def _outcome(each: StepEnded) -> Text:
    word, style = _WORDS[type(each.outcome)]
    return Text(word, style=style)


def _seconds(each: StepEnded) -> str:
    return f"{each.seconds:.1f} s" if isinstance(each.outcome, Done | Failed) else ""


def _stopping(event: RunStopping) -> str:
    if not event.waiting_for:
        return "stopping"
    return f"stopping: waiting for {', '.join(event.waiting_for)} to end; press Ctrl-C again to leave at once"


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"
