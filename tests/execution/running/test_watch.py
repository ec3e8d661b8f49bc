"""Ctrl-C ends a run in good order, and a second one ends it at once."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from treadle.artifacts import open_store
from treadle.execution.report import Event, RunPlanned
from treadle.execution.running.watch import watch

STUBBORN = """
import sys, time
from pathlib import Path
from treadle import StepRunner, StepSpec

store, begun = sys.argv[1:]

def body(path):
    Path(begun, Path(path).name).touch()
    time.sleep(60)

StepRunner(2).run([StepSpec(f"s{n}", body, output_path_prefix=store) for n in range(6)])
"""


@pytest.mark.timeout(30)
def test_a_second_ctrl_c_does_not_wait_for_bodies_that_do_not_stop(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN, tmp_path / "store", begun], stderr=subprocess.PIPE
    )
    while len(list(begun.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in errors
    assert len(list(begun.iterdir())) == 2, "nothing new was started"


def test_events_come_in_order_and_the_result_after_them() -> None:
    events: list[Event] = []
    planned = [RunPlanned(0, number) for number in range(20)]

    def work(report: object) -> str:
        for each in planned:
            report(each)  # type: ignore[operator]
        return "result"

    assert watch(work, lambda: None, events.append) == "result"
    assert events == planned


def test_an_error_of_the_work_is_raised_here() -> None:
    def work(report: object) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        watch(work, lambda: None, print)


def test_when_no_thread_is_to_be_had_the_run_ends_with_that_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the events of a thread that never began would be for ever."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        watch(lambda report: None, lambda: None, print)


def test_an_interrupt_of_the_reporter_loses_no_event() -> None:
    """Events come in lots: what is behind the one at which the reporter broke must still arrive."""
    seen: list[Event] = []
    planned = [RunPlanned(0, number) for number in range(6)]
    stopped = threading.Event()

    def work(report: object) -> None:
        for each in planned[:5]:
            report(each)  # type: ignore[operator]
        report.send()  # type: ignore[attr-defined]
        stopped.wait()
        report(planned[5])  # type: ignore[operator]

    def reporter(event: Event) -> None:
        seen.append(event)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(work, stopped.set, reporter)
    assert seen == planned


def test_ctrl_c_waits_until_the_reporter_has_taken_its_event() -> None:
    """A display that is torn in the middle of an event shows something that never was."""
    seen: list[str] = []
    stopped = threading.Event()

    def work(report: object) -> None:
        report(RunPlanned(0, 1))  # type: ignore[operator]
        report.send()  # type: ignore[attr-defined]
        stopped.wait()

    def reporter(event: Event) -> None:
        seen.append("begun")
        signal.raise_signal(signal.SIGINT)
        seen.append("taken")

    with pytest.raises(KeyboardInterrupt):
        watch(work, stopped.set, reporter)
    assert seen == ["begun", "taken"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.timeout(30)
def test_sigterm_ends_a_run_in_good_order(tmp_path: Path) -> None:
    """A cluster that wants its machine back sends SIGTERM: steps are asked to stop, their ends are kept."""
    begun = tmp_path / "begun"
    begun.mkdir()
    script = STUBBORN.replace(
        "time.sleep(60)", "[time.sleep(0.01) for _ in iter(stop_requested, True)]"
    ).replace("from treadle import", "from treadle.fray import stop_requested\nfrom treadle import")
    process = subprocess.Popen([sys.executable, "-c", script, tmp_path / "store", begun])
    while len(list(begun.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    assert process.wait(10) == 128 + signal.SIGTERM
    attempts = open_store(str(tmp_path / "store")).ledger.attempts()
    assert [each.outcome for each in attempts] == ["cancelled"] * 6
    assert sum("returned after it saw that it was to stop" in each.reason for each in attempts) == 2
