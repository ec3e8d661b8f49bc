"""Shows the progress of a run of steps, and a summary at the end.

On a terminal, steps under way are listed at the bottom with their time, and each step that ends adds a line
above. Elsewhere there are only plain lines, one when a step starts and one when it ends. Of a large run only
what took long or went wrong has a line of its own. What steps print themselves is shown in all cases. Use it
as a context manager around the run, and pass it to the run as its reporter:

    with Progress() as progress:
        run(handle, reporter=progress)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from treadle.execution.report import (
    Event,
    RunEnded,
    RunPlanned,
    RunStopping,
    StepDrifted,
    StepEnded,
    StepRetrying,
    StepStarted,
    StepWaiting,
    VersionsUnused,
)
from treadle.integrations.graph.model import duration
from treadle.integrations.progress.foot import foot
from treadle.integrations.progress.state import Doing, End, RunState, Word, owner_of, reason_of
from treadle.integrations.progress.summary import STYLES, Summary, counted, steps, took

LARGE = 200
"""More steps than these make a large run."""
_LONG = 1.0
_SILENCE = 10.0
_NAMED = 10


class Progress:
    """A reporter that draws on `console` (standard error when None); `clock` gives seconds.

    `max_concurrent` is that of the run; how long is left depends on it.
    """

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        max_concurrent: int = 8,
    ) -> None:
        self._console = console or Console(stderr=True)
        self._draws = self._console.is_terminal and not self._console.is_dumb_terminal
        self._clock = clock
        self._state = RunState(max_concurrent, clock)
        self._summary = Summary()
        self._told = clock()
        self._drifted = 0
        self._owners: set[str] = set()
        self._spinner = Spinner("dots")
        self._live = Live(console=self._console, get_renderable=lambda: self, transient=True)
        self._takers: Mapping[type[Event], Callable[[Any], None]] = {
            RunPlanned: self._plan,
            VersionsUnused: self._unused,
            StepDrifted: self._drift,
            StepStarted: self._start,
            StepWaiting: self._wait,
            StepRetrying: self._retry,
            StepEnded: self._end,
            RunStopping: self._stop,
            RunEnded: self._sum_up,
        }

    def __enter__(self) -> Self:
        if self._draws:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __rich__(self) -> RenderableType:
        return foot(self._state.view(), self._clock(), self._spinner, self._console.height)

    def __call__(self, event: Event) -> None:
        """Take in one event of the run."""
        self._takers[type(event)](event)

    def _plan(self, event: RunPlanned) -> None:
        first = not self._state.total
        self._state.planned(event)
        if first:
            left = self._state.seconds_left()
            about = f", about {duration(left)} by former builds" if left is not None else ""
            self._say(f"{steps(event.total)}: {event.cached:,} cached, {event.to_run:,} to run{about}")

    def _unused(self, event: VersionsUnused) -> None:
        self._say(f"no step has the name of these versions: {', '.join(event.names)}", "yellow")

    def _stop(self, event: RunStopping) -> None:
        active = [each.called for each in self._state.view().active if each.doing is Doing.RUNNING]
        known = len(active) == len(event.waiting_for)
        self._say(_stopping(active if known else event.waiting_for), "yellow")

    def _drift(self, event: StepDrifted) -> None:
        self._drifted += 1
        if self._drifted <= _NAMED:
            step = self._state.called(event.id)
            self._say(f"{step}: {event.what} since it was built, and the former result is served", "yellow")

    def _start(self, event: StepStarted) -> None:
        self._state.started(event)
        if not self._draws and not self._is_large():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            self._say(f"{self._place()} {self._state.called(event.id)}  started{again}")

    def _wait(self, event: StepWaiting) -> None:
        of = event.owner.describe().partition(", since")[0]
        is_new = self._state.waiting(event)
        if is_new and not (self._is_large() and of in self._owners):
            told = owner_of(event.owner) if of in self._owners else of
            more = ", and more steps may" if self._is_large() else ""
            self._say(f"{self._place()} {self._state.called(event.id)}  waits for {told}{more}", "cyan")
        self._owners.add(of)

    def _retry(self, event: StepRetrying) -> None:
        self._state.retrying(event)
        what = f"{event.told}; {event.next} begins in {duration(event.delay)}; {reason_of(event.error)}"
        self._say(f"{self._place()} {self._state.called(event.id)}  {what}", "yellow")

    def _end(self, event: StepEnded) -> None:
        end = self._state.ends(event)
        self._summary.add(end)
        if self._is_worth_a_line(end):
            seconds = took(end)
            what = f"{end.word.value}{seconds and f' in {seconds}'}{end.why and f', {end.why}'}"
            self._say(f"{self._place()} {end.called}  {what}", STYLES[end.word])
        elif not self._draws and self._clock() - self._told > _SILENCE:
            left = self._state.seconds_left()
            about = f"; about {duration(left)} left" if left is not None else ""
            self._say(f"{self._place()} {counted(self._state.counts)}{about}")

    def _is_worth_a_line(self, end: End) -> bool:
        """Cached ones were counted at the beginning; a thousand lines would hide the three that matter."""
        if end.word is Word.CACHED or (end.word is Word.SKIPPED and self._is_large()):
            return False
        return not self._is_large() or end.word in (Word.FAILED, Word.CANCELLED) or end.seconds >= _LONG

    def _is_large(self) -> bool:
        return self._state.total > LARGE

    def _sum_up(self, event: RunEnded) -> None:
        self._live.stop()
        counts = self._state.final(event.counts, event.cancelled)
        if counts.total() > counts[Word.CACHED]:
            self._console.print(self._summary.table(self._console.width), soft_wrap=True, end="")
        if (more := self._drifted - _NAMED) > 0:
            self._say(f"and {more:,} more steps have changed, and their former results are served", "yellow")
        ended, total = counts.total(), self._state.total
        whole = steps(ended) if ended >= total else f"{ended:,} of {steps(total)}"
        self._say(f"{whole} in {duration(event.seconds)}: {counted(counts) or 'nothing to do'}")
        if self._drifted:
            self._say("to build changed steps anew: --on-drift rebuild (in Python: on_drift='rebuild')")

    def _say(self, line: str, style: str = "") -> None:
        # Text, not markup: a message may hold brackets. Soft wrap: a long line is one line in a log, which a
        # terminal would break inside of words.
        self._console.print(Text(line, style=style), soft_wrap=not self._draws)
        self._told = self._clock()

    def _place(self) -> str:
        width = len(f"{self._state.total}")
        return f"[{self._state.ended:>{width}}/{self._state.total}]"


def _stopping(waiting_for: Sequence[str]) -> str:
    if not waiting_for:
        return "stopping"
    named = ", ".join(waiting_for[:_NAMED])
    more = len(waiting_for) - _NAMED
    named += f" and {more:,} more" if more > 0 else ""
    return f"stopping: waiting for {named} to end; press Ctrl-C again to leave at once"
