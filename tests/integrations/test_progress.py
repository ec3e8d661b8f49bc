"""What a run tells: lines that can be read in a log, a foot on a terminal, and every failure by name."""

import io
import re

from rich.console import Console

from treadle.execution.report import (
    CodeChanged,
    Event,
    RunEnded,
    RunPlanned,
    RunStopping,
    StepEnded,
    StepStarted,
)
from treadle.integrations.progress import ROWS, Progress
from treadle.kernel.outcome import Cached, Done, Failed, Outcome, Skipped

OUTCOMES: dict[str, Outcome] = {
    "read-1": Cached("x"),
    "split-2": Done("y"),
    "train-3": Failed(ValueError("no [bold] rows")),
    "name-4": Skipped(("train-3",)),
}
EVENTS: tuple[Event, ...] = (
    RunPlanned(cached=1, to_run=3),
    CodeChanged("read-1", "read"),
    StepEnded("read-1", "read", OUTCOMES["read-1"], 0),
    StepStarted("split-2", "split"),
    StepEnded("split-2", "split", OUTCOMES["split-2"], 4.2),
    StepStarted("train-3", "train"),
    StepEnded("train-3", "train", OUTCOMES["train-3"], 0.5),
    StepEnded("name-4", "name", OUTCOMES["name-4"], 0),
    RunEnded(OUTCOMES, 4.9),
)


def _told(events: tuple[Event, ...], *, terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, _environ={"TERM": "xterm"})
    with Progress(console, clock=lambda: 0.0) as progress:
        for event in events:
            progress(event)
    return out.getvalue()


def test_without_a_terminal_there_is_one_line_per_start_and_end() -> None:
    """A log has no cursor: escapes and redrawn bars would fill it."""
    told = _told(EVENTS, terminal=False)
    assert "\x1b" not in told
    assert told.splitlines()[:8] == [
        "4 steps: 1 cached, 3 to run",
        "read: its code has changed; the former result is served",
        "[1/4] read  cached",
        "[1/4] split  started",
        "[2/4] split  done in 4.2 s",
        "[2/4] train  started",
        "[3/4] train  failed in 0.5 s, ValueError: no [bold] rows",
        "[4/4] name  skipped, because of train",
    ]


def test_the_end_names_each_failed_step_and_each_skipped_one_with_its_culprit() -> None:
    """Whoever comes back after hours reads the last lines only."""
    told = _told(EVENTS, terminal=False)
    end = told[told.index("step   outcome") :]
    assert re.search(r"train +failed +0\.5 s +ValueError: no \[bold\] rows", end)
    assert re.search(r"name +skipped +because of train", end)
    assert end.splitlines()[-1] == "4 steps in 4.9 s: 1 done, 1 cached, 1 failed, 1 skipped"


def test_on_a_terminal_the_running_steps_stand_at_the_foot() -> None:
    """One has to see what takes so long."""
    console = Console(file=io.StringIO(), force_terminal=True, width=100, _environ={"TERM": "xterm"})
    times = iter([0.0, 0.0, *[65.0] * 100])
    progress = Progress(console, clock=lambda: next(times))
    for event in (RunPlanned(0, 3), StepStarted("a-1", "a"), StepStarted("b-2", "b")):
        progress(event)
    with console.capture() as capture:
        console.print(progress)
    foot = capture.get()
    assert re.search(r"a.*65 s", foot)
    assert re.search(r"b.*65 s", foot)
    assert "0/3 ended, 0 cached, 2 running" in foot


def test_on_a_terminal_nothing_is_swallowed() -> None:
    """What steps print must come through while the foot is drawn."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, _environ={"TERM": "xterm"})
    with Progress(console) as progress:
        progress(EVENTS[0])
        print("printed by a step")
        progress(EVENTS[2])
    assert "printed by a step" in out.getvalue()
    assert "read  cached" in out.getvalue()


def test_a_large_run_is_summed_up_by_what_went_wrong_and_what_took_long() -> None:
    """A thousand lines at the end would hide the three that matter."""
    ends = [StepEnded(f"s{n}", f"s{n}", Done(), n) for n in range(1000)]
    ends[0] = StepEnded("s0", "s0", Failed(ValueError("first")), 0.1)
    told = _told((*ends, RunEnded({end.id: end.outcome for end in ends}, 9)), terminal=False)
    rows = told[told.index("step ") :].splitlines()[1:-1]
    assert len(rows) == ROWS
    assert rows[0].split()[:2] == ["s0", "failed"]
    assert rows[1].split()[:2] == ["s999", "done"]


def test_a_run_with_nothing_to_do_is_told_in_one_breath() -> None:
    """A table that repeats the lines above it says nothing."""
    cached = Cached("x")
    told = _told(
        (RunPlanned(1, 0), StepEnded("read-1", "read", cached, 0), RunEnded({"read-1": cached}, 0.1)),
        terminal=False,
    )
    assert told.splitlines() == [
        "1 step: 1 cached, 0 to run",
        "[1/1] read  cached",
        "1 step in 0.1 s: 1 cached",
    ]


def test_whoever_presses_ctrl_c_learns_what_is_waited_for() -> None:
    """Silence for half a minute makes people reach for kill -9."""
    told = _told((RunStopping(("train", "name")),), terminal=False)
    assert told == "stopping: waiting for train, name to end; press Ctrl-C again to leave at once\n"
