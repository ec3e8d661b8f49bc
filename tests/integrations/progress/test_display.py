"""What a run tells: lines that can be read in a log, a foot on a terminal, and every failure by name."""

import io
import re
from collections.abc import Iterable

import pytest
from rich.console import Console

from treadle.execution import StepSpec
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
from treadle.integrations.progress.display import LARGE, Progress
from treadle.integrations.progress.summary import LONGEST
from treadle.kernel.outcome import Cached, Done, Failed, Skipped
from treadle.storage.ledger import Owner

OWNER = Owner("run-1", "host", 17, "2026-01-01T00:00:00+00:00", "", 0)
ERROR = ValueError("no [bold] rows\nand a second line")
COUNTS = {Done: 1, Cached: 1, Failed: 1, Skipped: 1}
EVENTS: tuple[Event, ...] = (
    RunPlanned(1, 3),
    VersionsUnused(("totl",)),
    StepDrifted("read-1", "read", "its recipe has changed"),
    StepEnded("read-1", "read", Cached("x"), 0),
    StepStarted("split-2", "split"),
    StepEnded("split-2", "split", Done("y"), 4.2),
    StepStarted("train-3", "train"),
    StepEnded("train-3", "train", Failed(ERROR), 0.5),
    StepEnded("name-4", "name", Skipped(("train-3",)), 0),
    RunEnded(COUNTS, 4.9),
)


def _told(events: Iterable[Event], *, terminal: bool = False, width: int = 100) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, _environ={"TERM": "xterm"})
    with Progress(console, clock=lambda: 0.0) as progress:
        for event in events:
            progress(event)
    return out.getvalue()


def _foot(
    events: Iterable[Event], *, times: tuple[float, float], slots: int = 8, width: int = 100, height: int = 25
) -> str:
    """The foot at the second of the times, when all events came at the first."""
    console = Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, _environ={"TERM": "xterm"}
    )
    now = [times[0]]
    progress = Progress(console, clock=lambda: now[0], max_concurrent=slots)
    for event in events:
        progress(event)
    now[0] = times[1]
    with console.capture() as capture:
        console.print(progress)
    return re.sub(r"\x1b\[[\d;]*m", "", capture.get())


def test_without_a_terminal_there_is_one_line_per_start_and_end() -> None:
    """A log has no cursor: escapes and redrawn bars would fill it."""
    told = _told(EVENTS)
    assert "\x1b" not in told
    assert told.splitlines()[:8] == [
        "4 steps: 1 cached, 3 to run",
        "no step has the name of these versions: totl",
        "read-1: its recipe has changed since it was built, and the former result is served",
        "[1/4] split-2  started",
        "[2/4] split-2  done in 4.2 s",
        "[2/4] train-3  started",
        "[3/4] train-3  failed in 0.5 s, ValueError: no [bold] rows…",
        "[4/4] name-4  skipped, because of train-3",
    ]


def test_the_end_names_each_failed_step_and_each_skipped_one_with_its_culprit() -> None:
    """Whoever comes back after hours reads the last lines only."""
    told = _told(EVENTS)
    end = told[told.index("step ") :]
    assert re.search(r"train-3 +failed +0\.5 s +ValueError: no \[bold\] rows…", end)
    assert re.search(r"name-4 +skipped +because of train-3", end)
    assert end.splitlines()[-2] == "4 steps in 4.9 s: 1 done, 1 cached, 1 failed, 1 skipped"
    assert (
        end.splitlines()[-1]
        == "to build changed steps anew: --on-drift rebuild (in Python: on_drift='rebuild')"
    )


def test_what_was_asked_to_stop_is_cancelled_and_not_failed() -> None:
    told = _told(
        [
            RunPlanned(0, 4),
            StepEnded("a-1", "a", Done("x"), 1.0),
            StepEnded("b-2", "b", Failed(KeyboardInterrupt()), 2.0, cancelled=True),
            RunEnded({Done: 1, Failed: 1}, 2.0, cancelled=1),
        ]
    )
    assert "[2/4] b-2  cancelled in 2.0 s, KeyboardInterrupt" in told
    assert re.search(r"^b-2 +cancelled +2\.0 s", told, re.MULTILINE)
    assert told.endswith("2 of 4 steps in 2.0 s: 1 done, 1 cancelled\n")


def test_time_left_counts_the_workers_that_there_are() -> None:
    for at_once, about in ((None, "1.0 s"), (1, "8.0 s")):
        expected = {f"s-{n}": 1.0 for n in range(8)}
        assert f"about {about} by former builds" in _told([RunPlanned(0, 8, expected, at_once=at_once)])


def test_labels_tell_steps_of_one_name_apart_wherever_they_are_named() -> None:
    reads = [StepSpec("read", str, hash_attrs={"path": path}, output_path_prefix="/s") for path in "ab"]
    steps = dict(zip(("read-1", "read-2"), reads, strict=True))
    told = _told(
        [
            RunPlanned(0, 3, steps=steps),
            StepStarted("read-1", "read"),
            StepWaiting("read-1", "read", OWNER),
            StepStarted("read-2", "read"),
            RunStopping(("read",)),
            StepEnded("read-1", "read", Failed(ERROR), 1.0),
            StepEnded("join-3", "join", Skipped(("read-1",)), 0),
            RunEnded({Failed: 1, Skipped: 1}, 1.0),
        ]
    )
    assert told.splitlines()[1:6] == [
        "[0/3] read-1 (path='a')  started",
        "[0/3] read-1 (path='a')  waits for run run-1 on host, process 17",
        "[0/3] read-2 (path='b')  started",
        "stopping: waiting for read-2 (path='b') to end; press Ctrl-C again to leave at once",
        "[1/3] read-1 (path='a')  failed in 1.0 s, ValueError: no [bold] rows…",
    ]
    assert re.search(r"^read-1 \(path='a'\) +failed", told, re.MULTILINE)
    assert re.search(r"^join-3 +skipped +because of read-1 \(path='a'\)$", told, re.MULTILINE)
    assert "read-2 (path='b') " in _foot(
        [RunPlanned(0, 2, steps=steps), StepStarted("read-2", "read")], times=(0.0, 1.0)
    )


def test_a_step_that_waits_is_told_once_for_each_owner() -> None:
    """A line a second says nothing new; another owner does."""
    other = Owner("run-2", "host", 18, "2026-01-01T00:00:00+00:00", "", 0)
    waits = [StepWaiting("a-1", "a", owner) for owner in (OWNER, OWNER, other, other)]
    told = _told([RunPlanned(0, 2), StepStarted("a-1", "a"), *waits, StepWaiting("b-2", "b", OWNER)])
    assert told.splitlines()[2:] == [
        "[0/2] a-1  waits for run run-1 on host, process 17",
        "[0/2] a-1  waits for run run-2 on host, process 18",
        "[0/2] b-2  waits for process 17 on host",
    ]


def test_what_others_did_is_told_apart_from_what_was_there() -> None:
    """Whoever started several processes wants to know that each had its share."""
    told = _told(
        [
            RunPlanned(1, 1),
            StepEnded("a-1", "a", Cached("x"), 0),
            StepStarted("b-2", "b"),
            StepWaiting("b-2", "b", OWNER),
            StepEnded("b-2", "b", Cached("y"), 0.2),
            RunEnded({Cached: 2}, 1.0),
        ]
    )
    assert re.search(r"b-2 +done elsewhere +by process 17 on host", told)
    assert re.search(r"^1 step +cached$", told, re.MULTILINE)
    assert told.splitlines()[-1] == "2 steps in 1.0 s: 1 done elsewhere, 1 cached"


def test_a_retry_is_told_with_its_cause_and_counted() -> None:
    told = _told(
        [
            RunPlanned(0, 1),
            StepStarted("a-1", "a"),
            StepRetrying("a-1", "a", 2, 3.0, ERROR),
            StepStarted("a-1", "a", 2),
            StepEnded("a-1", "a", Done("x"), 1.0),
        ]
    )
    assert told.splitlines()[2:] == [
        "[0/1] a-1  attempt 1 failed; attempt 2 begins in 3.0 s; ValueError: no [bold] rows…",
        "[0/1] a-1  started, attempt 2",
        "[1/1] a-1  done in 1.0 s, attempt 2",
    ]


PLANNED = RunPlanned(0, 3, {"a-1": 10.0, "b-2": 100.0, "c-3": 40.0}, ("b-2", "c-3"))


def test_the_foot_names_what_is_under_way() -> None:
    """One has to see what takes so long, and what it waits for."""
    events = (
        PLANNED,
        StepStarted("a-1", "a"),
        StepStarted("b-2", "b"),
        StepStarted("c-3", "c"),
        StepWaiting("c-3", "c", OWNER),
    )
    lines = [" ".join(line.split()) for line in _foot(events, times=(0.0, 65.0)).splitlines()]
    assert lines[0].endswith("a-1 1 min 5 s of ~10 s")
    assert lines[1].endswith("◆ b-2 1 min 5 s of ~1 min 40 s")
    assert lines[2] == "· ◆ c-3 waits 1 min 5 s for process 17 on host"
    assert lines[3].endswith("0/3 ended, 2 running, 1 waiting, ~35 s left")


@pytest.mark.parametrize(("slots", "left"), [(8, "~2 min 0 s left"), (1, "~2 min 10 s left")])
def test_what_is_left_is_the_longest_path_or_all_work_over_all_slots(slots: int, left: str) -> None:
    """After 20 s, 120 s are left of the path. With one slot there are another 10 s to do."""
    events = (PLANNED, StepStarted("b-2", "b"))
    assert left in _foot(events, times=(0.0, 20.0), slots=slots)


def test_what_is_left_of_a_stream_grows_with_its_parts() -> None:
    second = RunPlanned(0, 1, {"d-4": 1_000.0}, ("d-4",))
    ended = StepEnded("b-2", "b", Done("x"), 100.0)
    assert "~16 min 40 s left" in _foot((PLANNED, second, ended), times=(0.0, 0.0))


def test_a_step_that_is_late_does_not_turn_time_back() -> None:
    events = (RunPlanned(0, 1, {"a-1": 10.0}, ("a-1",)), StepStarted("a-1", "a"))
    assert "1 running, due now" in _foot(events, times=(0.0, 1_000.0))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (120, 50)])
def test_the_foot_fits_the_terminal(width: int, height: int) -> None:
    """Lines that break or scroll away leave litter on the screen."""
    keys = [f"a_step_with_a_rather_long_name-{n:012}" for n in range(100)]
    events: list[Event] = [RunPlanned(0, 100), *(StepStarted(key, key.rpartition("-")[0]) for key in keys)]
    waiting = [StepWaiting(key, key, OWNER) for key in keys[:50]]
    foot = _foot([*events, *waiting], times=(0.0, 5.0), width=width, height=height)
    assert len(foot.splitlines()) < height
    assert all(len(line) <= width for line in foot.splitlines())
    assert re.search(r"and \d+ more under way", foot)
    assert "0/100 ended" in foot


def test_on_a_terminal_nothing_is_swallowed() -> None:
    """What steps print must come through while the foot is drawn."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, _environ={"TERM": "xterm"})
    with Progress(console) as progress:
        progress(EVENTS[0])
        print("printed by a step")
        progress(EVENTS[5])
    assert "printed by a step" in out.getvalue()
    assert "done in 4.2 s" in out.getvalue()


def test_a_large_run_is_summed_up_by_what_went_wrong_and_what_took_long() -> None:
    """A thousand lines would hide the three that matter."""
    ends = [StepEnded(f"s-{n}", "s", Done(), n / 1000) for n in range(1000)]
    ends[0] = StepEnded("s-0", "s", Failed(ValueError("first")), 0.1)
    ends[1] = StepEnded("s-1", "s", Done(), 7.0)
    told = _told([RunPlanned(0, 1000), *ends, RunEnded({Done: 999, Failed: 1}, 9)])
    lines = told[: told.index("step ")].splitlines()
    assert lines[1:] == [
        "[   1/1000] s-0  failed in 0.1 s, ValueError: first",
        "[   2/1000] s-1  done in 7.0 s",
    ]
    rows = told[told.index("step ") :].splitlines()[1:-1]
    assert len(rows) == 1 + LONGEST + 1
    assert rows[0].split()[:2] == ["s-0", "failed"]
    assert [row.split()[0] for row in rows[1:3]] == ["s-1", "s-999"]
    assert rows[-1].split() == ["and", "989", "more"]


def test_many_steps_that_wait_for_one_owner_are_told_once() -> None:
    count = LARGE + 1
    waits = [StepWaiting(f"s-{n}", "s", OWNER) for n in range(count)]
    told = _told([RunPlanned(0, count), *waits])
    assert told.splitlines()[1:] == [
        "[  0/201] s-0  waits for run run-1 on host, process 17, and more steps may"
    ]


def test_a_large_run_in_a_log_says_now_and_then_how_far_it_is() -> None:
    out = io.StringIO()
    now = [0.0]
    progress = Progress(Console(file=out, width=100), clock=lambda: now[0])
    progress(RunPlanned(0, 1000))
    for number in range(30):
        now[0] += 1
        progress(StepEnded(f"s-{number}", "s", Done(), 0.1))
    assert out.getvalue().splitlines()[1:] == ["[  11/1000] 11 done", "[  22/1000] 22 done"]


def test_a_run_with_nothing_to_do_is_told_in_one_breath() -> None:
    """A table that repeats the lines above it says nothing."""
    told = _told([RunPlanned(1, 0), StepEnded("read-1", "read", Cached("x"), 0), RunEnded({Cached: 1}, 0.1)])
    assert told.splitlines() == ["1 step: 1 cached, 0 to run", "1 step in 0.1 s: 1 cached"]


def test_an_event_that_ctrl_c_tore_is_counted_in_the_end() -> None:
    """An interrupt strikes anywhere, also while a line is printed; the run itself knows the numbers."""
    told = _told([RunPlanned(0, 3), StepEnded("a-1", "a", Done("x"), 1.0), RunEnded({Done: 2}, 2.0)])
    assert told.splitlines()[-1] == "2 of 3 steps in 2.0 s: 2 done"


def test_whoever_presses_ctrl_c_learns_what_is_waited_for() -> None:
    """Silence for half a minute makes people reach for kill -9."""
    told = _told([RunPlanned(0, 5), RunStopping(("train", "name")), RunEnded({}, 1.0)])
    assert told.splitlines()[1:] == [
        "stopping: waiting for train, name to end; press Ctrl-C again to leave at once",
        "0 of 5 steps in 1.0 s: nothing to do",
    ]
