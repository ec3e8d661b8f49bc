"""Each step's output is its own: tagged, whole lines, in its own file, and the streams stay as they were."""

import io
import random
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from treadle.execution.running.capture import capture
from treadle.execution.running.step_log import step_log
from treadle.fray.layers import Layer
from treadle.fray.lines import Lines
from treadle.kernel import carry

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\S+)#(\d+) (stdout|stderr|log|error) \| (.*)")


class Terminal(io.TextIOWrapper):
    """A stream like a real one, with a binary face, whose text can be read back."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")

    def text(self) -> str:
        self.flush()
        return cast("io.BytesIO", self.buffer).getvalue().decode()


def on_terminal(test: Callable[[Terminal, Path], None]) -> Callable[[Path], None]:
    """Run the test with a terminal as stdout. A fixture cannot: pytest sets its own after the fixtures."""

    def run(tmp_path: Path) -> None:
        before, sys.stdout = sys.stdout, Terminal()
        terminal = sys.stdout
        try:
            test(terminal, tmp_path)
            assert sys.stdout is terminal
        finally:
            sys.stdout = before

    return run


def entries(path: Path) -> list[tuple[str, ...]]:
    matches = [LINE.fullmatch(line) for line in path.read_text().splitlines()]
    return [match.groups() if match else ("no match",) for match in matches]


def texts(path: Path) -> list[str]:
    return [entry[-1] for entry in entries(path)]


@on_terminal
def test_parallel_steps_that_write_in_pieces_never_mix(terminal: Terminal, tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    meet = threading.Barrier(len(names))

    def body(name: str) -> None:
        rng = random.Random(name)
        with step_log(tmp_path / f"{name}.log", name, 1):
            meet.wait(timeout=10)
            for i in range(1000):
                for piece in re.findall(f".{{1,{rng.randint(1, 9)}}}", f"{name} says number {i}"):
                    print(piece, end="", flush=rng.random() < 0.1)
                print()

    with capture(), ThreadPoolExecutor(4) as pool:
        list(pool.map(carry(body), names))
    echoed = terminal.text().splitlines()
    assert len(echoed) == 4000
    for name in names:
        said = [f"{name} says number {i}" for i in range(1000)]
        assert entries(tmp_path / f"{name}.log") == [(name, "1", "stdout", each) for each in said]
        assert [line for line in echoed if line.startswith(f"{name} |")] == [f"{name} | {e}" for e in said]


@on_terminal
def test_what_is_printed_outside_of_a_body_passes_untouched(terminal: Terminal, tmp_path: Path) -> None:
    with capture():
        print("pre", end="")
        with step_log(tmp_path / "x" / "a.log", "a", 1, echo=False):
            print("inside")
        print("post")
    assert terminal.text() == "prepost\n"
    assert texts(tmp_path / "x" / "a.log") == ["inside"]


def test_a_step_that_says_nothing_leaves_no_file_and_no_folder(tmp_path: Path) -> None:
    with capture(), step_log(tmp_path / "logs" / "a.log", "a", 1):
        pass
    assert list(tmp_path.iterdir()) == []


@on_terminal
def test_attempts_share_a_file_and_an_unfinished_line_is_kept(terminal: Terminal, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with capture():
        with pytest.raises(ZeroDivisionError), step_log(log, "a", 1):
            print("half", end="")
            _ = 1 / 0
        with step_log(log, "a", 2):
            print("whole")
            print("to stderr", file=sys.stderr)
    *traceback, half, whole, other = entries(log)
    assert {each[:3] for each in traceback} == {("a", "1", "error")}
    assert traceback[-1][3] == "ZeroDivisionError: division by zero"
    assert half == ("a", "1", "stdout", "half")
    assert whole == ("a", "2", "stdout", "whole")
    assert other == ("a", "2", "stderr", "to stderr")
    assert terminal.text() == "a | half\na | whole\n"


@on_terminal
def test_an_inner_run_has_its_own_logs(terminal: Terminal, tmp_path: Path) -> None:
    with capture(), step_log(tmp_path / "outer.log", "outer", 1):
        print("before")
        with capture(), step_log(tmp_path / "inner.log", "inner", 1):
            print("within")
        print("after")
    assert texts(tmp_path / "outer.log") == ["before", "after"]
    assert texts(tmp_path / "inner.log") == ["within"]
    assert terminal.text() == "outer | before\ninner | within\nouter | after\n"


@on_terminal
def test_captures_may_overlap_and_the_last_one_restores(terminal: Terminal, tmp_path: Path) -> None:
    first, second = capture(), capture()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.stdout is not terminal
    second.__exit__(None, None, None)


@on_terminal
def test_a_stream_that_somebody_replaced_meanwhile_stays(terminal: Terminal, tmp_path: Path) -> None:
    """As by a live display or a test's capture; what they put back later is still no layer that acts."""
    stranger = io.StringIO()
    with capture():
        layer, sys.stdout = sys.stdout, stranger
        with capture(), step_log(tmp_path / "a.log", "a", 1):
            print("over the stranger")
        assert sys.stdout is stranger
    assert sys.stdout is stranger
    sys.stdout = layer
    with step_log(tmp_path / "b.log", "b", 1):
        print("passed on")
    with capture():
        assert cast("Layer", sys.stdout).original is terminal
    assert stranger.getvalue() == "a | over the stranger\n"
    assert terminal.text() == "passed on\n"
    assert not (tmp_path / "b.log").exists()


@on_terminal
def test_the_streams_other_faces_work(terminal: Terminal, tmp_path: Path) -> None:
    with capture():
        sys.stdout.buffer.write(b"outside\n")
        with step_log(tmp_path / "a.log", "a", 1):
            assert sys.stdout.encoding == "utf-8"
            assert not sys.stdout.isatty()
            for byte in "bytes: \u00e9\n".encode():
                sys.stdout.buffer.write(bytes([byte]))
            sys.stdout.buffer.write(b"\xff\n")
            sys.stdout.buffer.flush()
            sys.stdout.writelines(["one\n", "two\n"])
            with pytest.raises(TypeError, match="must be str"):
                sys.stdout.write(b"no text")  # type: ignore[arg-type]
            with pytest.raises(io.UnsupportedOperation):
                sys.stdout.fileno()
    assert texts(tmp_path / "a.log") == ["bytes: \u00e9", "\ufffd", "one", "two"]
    assert terminal.text().startswith("outside\n")


def test_fileno_is_that_of_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So what a child process is given to write to is a real file."""
    with (tmp_path / "out.txt").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        with capture(), step_log(tmp_path / "a.log", "a", 1):
            assert sys.stdout.fileno() == file.fileno()


@on_terminal
def test_a_thread_that_outlives_its_body_is_outside(terminal: Terminal, tmp_path: Path) -> None:
    ended = threading.Event()

    def late() -> None:
        assert ended.wait(timeout=10)
        print("late")

    with capture():
        with step_log(tmp_path / "a.log", "a", 1):
            thread = threading.Thread(target=carry(late))
            thread.start()
        ended.set()
        thread.join()
    assert terminal.text() == "late\n"
    assert not (tmp_path / "a.log").exists()


@on_terminal
def test_a_log_that_cannot_be_written_is_not_silent(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with capture(), pytest.raises(OSError, match="file"), step_log(tmp_path / "file" / "a.log", "a", 1):
        print("hello")


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (["\r 10%", "\r 20%", "\r100%\n", "done\n"], ["100%", "done"]),
        (["windows\r\n", "next\n"], ["windows", "next"]),
        (["\r 10%", "\r     ", "\r", "hello\n"], ["hello"]),
        (["a", "b\nc", "\n\nd"], ["ab", "c", "", "d"]),
        (["\r 99%", "\r   ", "\r"], []),
        (["50%\r", "60%\r"], ["60%"]),
    ],
)
def test_a_line_that_is_written_over_counts_in_its_last_state(pieces: list[str], lines: list[str]) -> None:
    """Else a progress bar would fill the log."""
    collector = Lines()
    assert [line for piece in pieces for line in collector.feed(piece)] + collector.rest() == lines


def test_a_progress_bar_keeps_one_state_at_a_time() -> None:
    lines = Lines()
    for i in range(100_000):
        lines.feed(f"\r{i}")
    assert sum(map(len, lines._pieces)) < 10
    assert lines.rest() == ["99999"]
