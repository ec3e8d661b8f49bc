"""What a body logs is in its step's log, once, and logging outside of bodies stays as it was."""

import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from treadle.execution.running.capture import capture
from treadle.execution.running.step_log import step_log

logger = logging.getLogger("toy.module")


def unconfigured(test: Callable[[io.StringIO, Path], None]) -> Callable[[Path], None]:
    """Run the test as in a process in which nobody has configured logging, with its own stderr."""

    def run(tmp_path: Path) -> None:
        before, handlers, sys.stderr, logging.root.handlers = (
            sys.stderr,
            logging.root.handlers,
            io.StringIO(),
            [],
        )
        terminal = sys.stderr
        try:
            test(terminal, tmp_path)
            assert sys.stderr is terminal
            assert (logging.root.handlers, logging.root.level) == ([], logging.WARNING)
        finally:
            sys.stderr, logging.root.handlers = before, handlers

    return run


@contextmanager
def handled_by(handler: logging.Handler) -> Iterator[None]:
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def said(path: Path) -> list[str]:
    return [re.sub(r"^\S+ ", "", line) for line in path.read_text().splitlines()]


@unconfigured
def test_records_of_a_body_are_logged_and_shown(terminal: io.StringIO, tmp_path: Path) -> None:
    with capture(), step_log(tmp_path / "a.log", "a", 3):
        logger.debug("not this")
        logger.info("read %d rows", 7)
        logger.warning("two\nlines")
    lines = ["INFO toy.module: read 7 rows", "WARNING toy.module: two", "lines"]
    assert said(tmp_path / "a.log") == [f"a#3 log | {line}" for line in lines]
    assert terminal.getvalue().splitlines() == [f"a | {line}" for line in lines]


@unconfigured
def test_records_outside_of_a_body_go_where_they_went(terminal: io.StringIO, tmp_path: Path) -> None:
    """A handler on the root would end what logging does where nobody has configured it."""
    with capture():
        logger.info("not shown")
        logger.warning("shown")
    assert terminal.getvalue() == "shown\n"


@unconfigured
def test_a_configured_handler_shows_a_record_and_we_do_not_again(
    terminal: io.StringIO, tmp_path: Path
) -> None:
    own = io.StringIO()
    with handled_by(logging.StreamHandler(own)), capture(), step_log(tmp_path / "a.log", "a", 1):
        logger.warning("once")
    assert own.getvalue() == "once\n"
    assert terminal.getvalue() == ""
    assert said(tmp_path / "a.log") == ["a#1 log | WARNING toy.module: once"]


@unconfigured
def test_a_handler_that_writes_to_the_layer_brings_the_record_once(
    terminal: io.StringIO, tmp_path: Path
) -> None:
    with capture(), step_log(tmp_path / "a.log", "a", 1), handled_by(logging.StreamHandler()):
        logger.warning("once")
    assert said(tmp_path / "a.log") == ["a#1 stderr | once"]
    assert terminal.getvalue() == "a | once\n"


@unconfigured
def test_the_level_of_configured_logging_is_respected(terminal: io.StringIO, tmp_path: Path) -> None:
    handler = logging.NullHandler()
    logging.root.addHandler(handler)
    try:
        with capture(), step_log(tmp_path / "a.log", "a", 1):
            assert not logger.isEnabledFor(logging.INFO)
            logger.error("this")
    finally:
        logging.root.removeHandler(handler)
    assert said(tmp_path / "a.log") == ["a#1 log | ERROR toy.module: this"]


@unconfigured
def test_a_fork_in_a_body_goes_on_writing_to_its_log(terminal: io.StringIO, tmp_path: Path) -> None:
    with capture(), step_log(tmp_path / "a.log", "a", 1):
        print("parent", file=sys.stderr)
        if (child := os.fork()) == 0:
            print("child", file=sys.stderr)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert said(tmp_path / "a.log") == ["a#1 stderr | parent", "a#1 stderr | child"]
