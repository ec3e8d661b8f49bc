"""`killed_load.py URL FOLDER MODE`: kill a run at each step of its load into a table, and go on after it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from treadle.db import Database
from treadle.storage import Checkpoint, OutputSpec, Session, WorkUnit

UNIT = WorkUnit("00000-in", 0, "in", 1, "in:0")
BEFORE: dict[str, list[int]] = {"append": [7], "overwrite": [7], "error": []}


def main() -> None:
    """One child for each step; fails by an assertion."""
    url, folder, mode = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    resumed_after_the_load = 0
    for step in count():
        table = f"test.killed_{step}"
        _begin(url, table, BEFORE[mode])
        place = folder / f"{step:03d}"
        ended = _ends_before(step, partial(run, url, place, table, mode))
        rows = read(url, table)
        old, new = BEFORE[mode], [*(BEFORE[mode] if mode == "append" else []), 1, 2]
        assert rows in (old, new), (step, rows)
        if (place / ".checkpoint" / "head.json").exists():
            resumed_after_the_load += rows == new
            run(url, place, table, mode)
            assert read_loads(url) == [], step
        elif not ended:
            assert rows == new, step
        assert read(url, table) == new, step
        _clear_loads(url)
        if ended:
            assert step > 10, "the patches did not count"
            assert resumed_after_the_load > 0
            return


def run(url: str, folder: Path, table: str, mode: Any, values: tuple[int, ...] = (1, 2)) -> None:
    """A run with a checkpoint."""
    spec = OutputSpec("postgres", url, mode=mode, options={"table": table})
    with Session({"rows": spec}, checkpoint=Checkpoint(str(folder / ".checkpoint"), "f")) as session:
        unit = WorkUnit(UNIT.id, UNIT.index, UNIT.source, UNIT.bytes, f"in:{values}")
        if session.finished("main", unit) is None:
            with session.staging.open_unit(unit) as writer:
                writer.write("rows", [{"id": each} for each in values])
                session.accept(writer.finish({}))
        session.commit()
        assert session.notes == []


def read(url: str, table: str) -> list[int]:
    """The rows of the table, none when it is not there."""
    with Database(url) as database:
        if database.execute("SELECT to_regclass(%s) IS NULL", (table,)) == [(True,)]:
            return []
        return [number for (number,) in database.execute(f"SELECT id FROM {table}")]


def read_loads(url: str) -> list[str]:
    """The tables whose loads are noted."""
    with Database(url) as database:
        if database.execute("SELECT to_regclass('test.treadle_loads') IS NULL") == [(True,)]:
            return []
        return [target for (target,) in database.execute("SELECT target FROM test.treadle_loads")]


def _begin(url: str, table: str, values: list[int]) -> None:
    with Database(url) as database:
        if values:
            database.execute(f"CREATE TABLE {table} (id bigint)")
            database.execute(f"INSERT INTO {table} VALUES (%s)", values)


def _clear_loads(url: str) -> None:
    with Database(url) as database:
        database.execute("DROP TABLE IF EXISTS test.treadle_loads")


def _ends_before(step: int, act: Callable[[], object]) -> bool:
    """Do `act` in a child, killed at the step of that number, from 0; whether it ended before."""
    child = os.fork()
    if child == 0:
        _kill_at(step)
        act()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"step {step}: ended by {status}"
    return status == 0


def _kill_at(step: int) -> None:
    """The steps are those before each statement, and before and after each end of a transaction."""
    left = [step]

    def moment() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    execute, copy_in, transaction = Database.execute, Database.copy_in, Database.transaction

    def executing(self: Database, *args: Any) -> Any:
        moment()
        return execute(self, *args)

    def copying(self: Database, *args: Any) -> Any:
        moment()
        return copy_in(self, *args)

    @contextmanager
    def transacting(self: Database) -> Iterator[None]:
        with transaction(self):
            yield
            moment()
        moment()

    Database.execute = executing  # type: ignore[method-assign, assignment]
    Database.copy_in = copying  # type: ignore[method-assign, assignment]
    Database.transaction = transacting  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
