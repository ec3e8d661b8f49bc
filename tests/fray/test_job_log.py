"""The log of a job: its last lines, whole, in bounded memory."""

from __future__ import annotations

import os
import random
import re
import threading
import tracemalloc

import pytest

from treadle.errors import ArgumentError
from treadle.fray.job_log import KEPT_CHARACTERS, KEPT_LINES, LONGEST_LINE, JobLog


def test_pieces_become_lines_and_an_unfinished_one_is_shown_as_it_stands() -> None:
    log = JobLog()
    for piece in ("one\ntw", "o\nth"):
        log.write("stdout", piece)
    assert log.tail() == ["one", "two", "th"]
    log.write("stdout", "ree\n")
    assert log.tail() == ["one", "two", "three"]
    assert log.tail(2) == ["two", "three"]


def test_streams_do_not_mix_within_a_line() -> None:
    log = JobLog()
    log.write("stdout", "to all")
    log.write("stderr", "to the wary")
    log.write("stdout", "\n")
    assert log.tail() == ["to all", "to the wary"]


def test_bytes_are_text_and_a_line_written_over_shows_its_last_state() -> None:
    log = JobLog()
    for byte in "é 10%\ré 20%\n".encode():
        log.write("stdout", bytes([byte]))
    assert log.tail() == ["é 20%"]


def test_only_the_last_lines_are_kept() -> None:
    log = JobLog()
    for number in range(KEPT_LINES + 500):
        log.write("stdout", f"{number}\n")
    assert log.tail(10**6) == [str(number) for number in range(500, KEPT_LINES + 500)]


def test_memory_is_bounded_whatever_is_written() -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    rng = random.Random(seed)
    log = JobLog()
    tracemalloc.start()
    for _ in range(400):
        size = rng.choice([10, 1000, 300_000])
        log.write(rng.choice(["stdout", "stderr"]), "x" * size + "\n" * rng.randint(0, 1))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2 * (KEPT_CHARACTERS + 4 * LONGEST_LINE)
    assert sum(map(len, log.tail(10**6))) <= KEPT_CHARACTERS + 4 * LONGEST_LINE
    assert max(map(len, log.tail(10**6))) <= 2 * LONGEST_LINE


def test_a_line_without_an_end_is_broken() -> None:
    log = JobLog()
    for _ in range(100):
        log.write("stdout", "x" * 10_000)
    assert len(log.tail(10**6)) > 10


def test_several_threads_may_write() -> None:
    log = JobLog()
    together = threading.Barrier(4)

    def write(name: str) -> None:
        together.wait(20)
        for number in range(200):
            log.write("stdout", f"{name}{number}\n")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for name in "abcd":
        said = [line for line in log.tail(10**6) if line.startswith(name)]
        assert said == [f"{name}{number}" for number in range(200)]


@pytest.mark.parametrize("lines", [0, -1, 1.5, True])
def test_a_number_of_lines_that_is_none_is_refused(lines: object) -> None:
    with pytest.raises(ArgumentError, match="max_lines"):
        JobLog().tail(lines)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_a_fork_can_write_while_a_thread_of_its_parent_does() -> None:
    log, stop = JobLog(), threading.Event()

    def write() -> None:
        while not stop.is_set():
            log.write("stdout", "busy\n")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if not child:
                log.write("stdout", "child\n")
                os._exit(0 if re.match("child", log.tail(1)[0]) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
