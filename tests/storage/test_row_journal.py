"""Results of single rows outlive the process that made them, and damage costs what is damaged only."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.checkpointed import session_of
from treadle.errors import RunError
from treadle.storage.row_journal import RowJournal, rows_in

RESULTS = [{"answer": "a\nb", "n": 1}, "ü 北 \ud800", None, [1.5, "x"], {}]


@contextmanager
def journal(path: Path) -> Iterator[RowJournal]:
    with closing(RowJournal(path)) as opened:
        yield opened


def fill(path: Path) -> None:
    with journal(path) as rows:
        for number, result in enumerate(RESULTS):
            rows.add(f"k{number}", result)


def test_what_was_added_is_found_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    assert rows_in(path) == 0
    fill(path)
    assert rows_in(path) == len(RESULTS)
    with journal(path) as rows:
        assert [rows.find(f"k{number}") for number in range(len(RESULTS))] == RESULTS
        assert rows.find("k9") is None


def test_what_is_added_meanwhile_is_not_found_and_the_first_of_several_is(tmp_path: Path) -> None:
    """Else it would depend on a race whether a row is asked about that is the same as an earlier one."""
    with journal(tmp_path / "rows") as rows:
        for result in ("first", "second"):
            rows.add("k", result)
            assert rows.find("k") is None
    with journal(tmp_path / "rows") as rows:
        assert rows.find("k") == "first"
    assert rows_in(tmp_path / "rows") == 1


def ends_of_lines(content: bytes | bytearray) -> list[int]:
    return [at + 1 for at, each in enumerate(content) if each == ord("\n")]


@given(st.data())
def test_a_torn_or_damaged_end_costs_the_rows_from_there_on(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Also zeros in place of the end, which a loss of power leaves. What comes after that is kept again."""
    path = tmp_path_factory.mktemp("journal") / "rows"
    fill(path)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    tail = data.draw(st.sampled_from([b"", b"\0" * (len(content) - cut), b"\n", b"00000000 k9 1\n", b"\xff"]))
    path.write_bytes(content[:cut] + tail)
    whole = sum(path.read_bytes().startswith(content[:end]) for end in ends_of_lines(content))
    with journal(path) as rows:
        rows.add("new", "result")
    assert rows_in(path) == whole + 1
    with journal(path) as rows:
        found = [rows.find(f"k{number}") for number in range(len(RESULTS))]
        assert found == [*RESULTS[:whole], *[None] * (len(RESULTS) - whole)]
        assert rows.find("new") == "result"


@given(st.data())
def test_a_damaged_line_costs_that_row_only(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Its end may be what is damaged, which then costs the line after it too; what is added is kept."""
    path = tmp_path_factory.mktemp("journal") / "rows"
    fill(path)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    hit = sum(end <= at for end in ends_of_lines(content))
    lost = {hit, hit + 1} if content[at] == ord("\n") else {hit}
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with journal(path) as rows:
        rows.add("new", "result")
    with journal(path) as rows:
        found = {number for number in range(len(RESULTS)) if rows.find(f"k{number}") == RESULTS[number]}
        assert found | {2} == set(range(len(RESULTS))) - lost | {2}, "the result of row 2 is None"
        assert rows.find("new") == "result"


def _add_and_die(path: Path) -> None:
    rows = RowJournal(path)
    for number in range(100):
        rows.add(f"k{number}", number)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_loses_nothing_that_it_added(tmp_path: Path) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_add_and_die, args=(tmp_path / "rows",))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert rows_in(tmp_path / "rows") == 100


def test_a_journal_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write .*nowhere/rows"):
        RowJournal(tmp_path / "nowhere" / "rows")


def test_a_session_keeps_rows_until_it_commits(tmp_path: Path) -> None:
    """A row alone is worth a checkpoint; one that holds none goes with the session that made it."""
    with session_of(tmp_path) as session:
        assert session.row_journal() is session.row_journal()
    assert not (tmp_path / ".checkpoint").exists()
    with session_of(tmp_path) as session:
        rows = session.row_journal()
        assert rows is not None
        rows.add("k", 1)
    with session_of(tmp_path) as session:
        rows = session.row_journal()
        assert rows is not None
        assert rows.find("k") == 1
        session.commit()
    assert not (tmp_path / ".checkpoint").exists()


def test_rows_outlive_a_change_of_the_recipe(tmp_path: Path) -> None:
    """Whoever adds them knows what they are worth; hours of work must not go with a change of a path."""
    with session_of(tmp_path) as session:
        rows = session.row_journal()
        assert rows is not None
        rows.add("k", 1)
    with session_of(tmp_path, fingerprint="other") as session:
        rows = session.row_journal()
        assert rows is not None
        assert rows.find("k") == 1
