"""verify tells what is wrong with which file, and goes on."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.artifacts import Store
from treadle.artifacts.verify import Finding, Problem, verify
from treadle.errors import LedgerError
from treadle.execution import StepRunner, StepSpec
from treadle.storage.ledger import Held

Build = Callable[..., StepSpec]


def told(store: Store, places: list[str] | None = None) -> list[tuple[Problem, str]]:
    """Problems, and paths relative to the store."""
    return [(each.problem, os.path.relpath(each.path, store.prefix)) for each in verify(store, places)]


def alter(store: Store, statement: str, *parameters: object) -> None:
    """Change the ledger behind its back."""
    store.ledger.close()
    with sqlite3.connect(Path(store.prefix, ".treadle", "ledger.db")) as connection:
        assert connection.execute(statement, parameters).rowcount == 1
    connection.close()


def test_a_store_in_order_and_an_empty_one_have_no_findings(store: Store, build: Build) -> None:
    assert list(verify(store)) == []
    assert not Path(store.prefix).exists()
    build("a")
    build("b/c", version="2026.01.01")
    assert list(verify(store)) == []


def test_each_kind_of_damage_is_told_with_its_file(store: Store, build: Build) -> None:
    step = build("a")
    folder, place = Path(step.output_path), store.place(step.output_path)
    (folder / "out.txt").write_text("TEXT")
    (folder / "deep" / "er.txt").write_text("longer")
    (folder / "deep" / "new.txt").touch()
    size, content, extra = verify(store)
    assert size == Finding(place, step.id, Problem.SIZE, f"{folder}/deep/er.txt", "expected 4 bytes, got 6")
    assert (content.problem, content.path) == (Problem.CHECKSUM, f"{folder}/out.txt")
    assert content.detail.startswith("expected sha256:")
    assert extra == Finding(place, step.id, Problem.EXTRA, f"{folder}/deep/new.txt")
    (folder / "out.txt").unlink()
    (folder / "out.txt").mkdir()
    (folder / "deep" / "er.txt").unlink()
    assert [each.problem for each in verify(store)] == [Problem.MISSING, Problem.SIZE, Problem.EXTRA]


def test_an_output_that_is_gone_has_all_its_files_missing(store: Store, build: Build) -> None:
    step = build("a")
    Path(step.output_path).rename(Path(store.prefix, "elsewhere"))
    assert [each.problem for each in verify(store)] == [Problem.MISSING, Problem.MISSING]
    assert str(next(verify(store))) == f"{step.output_path}/deep/er.txt: missing"


def test_only_some_places_can_be_looked_at(store: Store, build: Build) -> None:
    first, second = build("a"), build("b")
    for step in (first, second):
        Path(step.output_path, "out.txt").unlink()
    place = store.place(second.output_path)
    assert told(store, [place]) == [(Problem.MISSING, f"{place}/out.txt")]
    assert told(store, ["nowhere/x"]) == [(Problem.NO_BUILD, "nowhere/x")]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE builds SET head = 'x' WHERE place LIKE 'b/%'", Problem.RECORD),
        ("UPDATE builds SET body = 'x' WHERE place LIKE 'b/%'", Problem.RECORD),
    ],
)
def test_a_damaged_record_is_told_and_the_others_are_looked_at_all_the_same(
    store: Store, build: Build, statement: str, problem: Problem
) -> None:
    """The listing of the ledger ends at the first damaged head, in the middle of the alphabet here."""
    a, b, c = build("a"), build("b"), build("c")
    Path(a.output_path, "out.txt").unlink()
    Path(c.output_path, "out.txt").unlink()
    alter(store, statement)
    found = told(store)
    assert [each for each, _ in found] == [Problem.MISSING, problem, Problem.MISSING]
    assert found[1][1] == store.place(b.output_path)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("no_such_module", "no_such_module.Gone cannot be found"),
        ("raises_when_imported", "OverflowError: too much"),
        ("leaves_when_imported", "SystemExit: 3"),
    ],
)
def test_a_value_whose_class_cannot_be_had_is_told(
    store: Store, module: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raises_when_imported.py").write_text("raise OverflowError('too much')")
    (tmp_path / "leaves_when_imported.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)

    def fn(path: str) -> object:
        return 1

    step = StepSpec("a", fn, output_path_prefix=store.prefix)
    StepRunner().run([step])
    place = store.place(step.output_path)
    claim = store.ledger.claim(place, lambda: None)
    head, body = store.ledger.latest([place])[place].head, store.ledger.body(place, 1)
    gone = body.replace('"value":1', '"value":{"dataclass":["' + module + '","Gone",{}]}')
    note = store.ledger.attempts(place)[0]
    assert not isinstance(claim, Held)
    store.ledger.commit(claim, head, gone, note, None)
    (finding,) = verify(store)
    assert finding.problem is Problem.VALUE
    assert words in finding.detail


def test_a_ledger_that_cannot_be_read_at_all_is_an_error(store: Store, build: Build) -> None:
    build("a")
    store.ledger.close()
    for end in ("", "-wal", "-shm"):
        Path(store.prefix, ".treadle", f"ledger.db{end}").unlink(missing_ok=True)
    Path(store.prefix, ".treadle", "ledger.db").write_bytes(b"no database" * 1000)
    with pytest.raises(LedgerError, match=r"ledger\.db"):
        list(verify(store))


def test_adopted_data_is_looked_for_and_not_searched(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "data"
    source.mkdir()
    (source / "mine.txt").touch()
    StepRunner().run([StepSpec("a", None, source=str(source), output_path_prefix=store.prefix)])
    assert list(verify(store)) == []
    source.rename(tmp_path / "moved")
    assert [(each.problem, each.path) for each in verify(store)] == [(Problem.MISSING, str(source))]


def test_findings_come_as_they_are_found_and_a_step_built_anew_meanwhile_is_none(
    store: Store, build: Build
) -> None:
    versions = [f"2026.{month:02}.{day:02}" for month in range(1, 4) for day in range(1, 11)]
    steps = [build("a", version=version) for version in versions]
    for step in steps:
        Path(step.output_path, "out.txt").unlink()
    findings = verify(store)
    first = list(itertools.islice(findings, 2))
    build("a", "other", force=True, version=versions[-1])
    assert [each.place for each in (*first, *findings)] == [
        store.place(step.output_path) for step in steps[:-1]
    ]
