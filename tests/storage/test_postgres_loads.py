"""A run that loads a table and is killed loads it exactly once, however often it has to go on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.storage.killed_load import UNIT, read, read_loads, run
from treadle.db import Database
from treadle.errors import ArtifactError, DatabaseError, RunError
from treadle.storage import Checkpoint, OutputSpec, Session


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    """A server with a schema of the test's own, `test`."""
    with Database(postgres) as database:
        database.execute("CREATE SCHEMA test")
        yield postgres
        database.execute("DROP SCHEMA test CASCADE")


@pytest.mark.parametrize("mode", ["append", "overwrite", "error"])
def test_a_run_killed_at_any_step_of_its_load_ends_with_its_rows_once(
    url: str, tmp_path: Path, mode: str
) -> None:
    child = Path(__file__).with_name("killed_load.py")
    command = [sys.executable, str(child), url, str(tmp_path), mode]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def cut_after_the_load(url: str, folder: Path, mode: str) -> None:
    """What is left of a run that was killed when the database had taken its rows."""
    spec = OutputSpec("postgres", url, mode=mode, options={"table": "test.things"})  # type: ignore[arg-type]
    session = Session({"rows": spec}, checkpoint=Checkpoint(str(folder / ".checkpoint"), "f"))
    with session, session.staging.open_unit(UNIT) as writer:
        writer.write("rows", [{"id": 1}, {"id": 2}])
        session.accept(writer.finish({}))

        def cut() -> None:
            raise RunError("cut")

        with pytest.raises(RunError, match="cut"):
            session.commit(conclude=cut)


@pytest.mark.parametrize("mode", ["append", "error"])
def test_rows_of_inputs_that_changed_after_the_load_are_not_added_to_it(
    url: str, tmp_path: Path, mode: str
) -> None:
    """What is there can no longer be told from the rows of others, so a person has to decide."""
    cut_after_the_load(url, tmp_path, mode)
    with pytest.raises(ArtifactError, match=r"test\.things: this run loaded its rows at .* token = '\w+'"):
        run(url, tmp_path, "test.things", mode, (1, 2, 3))
    assert read(url, "test.things") == [1, 2]
    run(url, tmp_path, "test.things", mode)
    assert read(url, "test.things") == [1, 2]
    assert read_loads(url) == []


def test_overwrite_replaces_also_what_the_same_run_has_loaded(url: str, tmp_path: Path) -> None:
    cut_after_the_load(url, tmp_path, "overwrite")
    run(url, tmp_path, "test.things", "overwrite", (1, 2, 3))
    assert read(url, "test.things") == [1, 2, 3]


def test_a_run_without_a_checkpoint_leaves_no_trace_in_the_database(url: str) -> None:
    spec = OutputSpec("postgres", url, options={"table": "test.things"})
    with Session({"rows": spec}) as session:
        session.write("rows", UNIT, [{"id": 1}])
        session.commit()
    with Database(url) as database:
        assert database.execute("SELECT to_regclass('test.treadle_loads')") == [(None,)]


def test_runs_that_make_the_table_of_loads_at_once_do_not_fail(url: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda n: run(url, tmp_path / str(n), f"test.t{n}", "append"), range(8)):
            pass
    assert [read(url, f"test.t{n}") for n in range(8)] == [[1, 2]] * 8


def test_who_may_not_make_the_table_of_loads_is_told_before_any_work(url: str, tmp_path: Path) -> None:
    with Database(url) as database:
        database.execute("DROP ROLE IF EXISTS reader")
        database.execute("CREATE ROLE reader LOGIN")
        database.execute("GRANT USAGE ON SCHEMA test TO reader")
    as_reader = url.replace("//postgres@", "//reader@")
    with pytest.raises(DatabaseError, match=r"CREATE TABLE .*treadle_loads.*permission denied"):
        run(as_reader, tmp_path, "test.things", "append")
    assert list(tmp_path.iterdir()) == []
