"""Runs one small graph again and again, each time in a process that is killed one write later.

    python killed.py ROOT SCENARIO

Under ROOT, `{n}` is the store of the process that was killed before its n-th write. One line for each
process is printed: n, its exit code, and the write at which it was killed. Ends with the first that was not.
"""

from __future__ import annotations

import io
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from treadle.execution import StepRunner, StepSpec

KILLED = 9


class Fate:
    """Counts writes, and kills the process at one of them."""

    def __init__(self, last: int, told: int) -> None:
        self.last, self.told, self.count = last, told, 0
        self.awake = False

    def write(self, what: str) -> None:
        self.count += self.awake
        if self.count == self.last:
            os.write(self.told, what.encode())
            os._exit(KILLED)

    def watch_calls(self) -> None:
        for name in ("rename", "replace", "mkdir", "rmdir", "unlink", "remove", "link", "symlink", "fsync"):
            setattr(os, name, self.watched(name, getattr(os, name)))
        for module in (io, sys.modules["builtins"]):
            module.open = self.watched_open(module.open)  # type: ignore[attr-defined]
        sqlite3.connect = self.watched_connect(sqlite3.connect)

    def watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self.write(name)
            return call(*args, **options)

        return counted

    def watched_open(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if set(mode) & set("wax+"):
                self.write(f"open {mode}")
            return call(file, mode, *args, **options)

        return counted

    def watched_connect(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def connect(*args: Any, **options: Any) -> Any:
            connection = call(*args, **options)
            connection.set_trace_callback(self.statement)
            return connection

        return connect

    def statement(self, text: str) -> None:
        words = text.split()
        if words and words[0].upper() not in ("SELECT", "PRAGMA", "--"):
            self.write(" ".join(words[:3]))


def steps(store: Path) -> list[StepSpec]:
    """Files, values, folders in folders, and a step of a place given by hand."""
    witness = str(store) + ".ran"

    def ran(name: str) -> None:
        file = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{name}\n".encode())
        os.close(file)

    def a(path: str) -> str:
        ran("a")
        Path(path, "a.txt").write_text("a" * 100)
        return "a"

    def b(path: str) -> list[str]:
        ran("b")
        Path(path, "deep", "er").mkdir(parents=True)
        Path(path, "deep", "er", "b.txt").write_text("b" * 200)
        Path(path, "b.bin").write_bytes(bytes(300))
        return ["b", f"{path}/b.bin"]

    def c(path: str) -> int:
        ran("c")
        return 3

    def d(path: str) -> None:
        ran("d")
        Path(path, "d.txt").write_text("d")

    first = StepSpec("a", a, output_path_prefix=str(store))
    second = StepSpec("b", b, [first], output_path_prefix=str(store))
    third = StepSpec("c", c, [first], output_path_prefix=str(store))
    place = str(store) + ".d"
    last = StepSpec("d", d, [second, third], output_path_prefix=str(store), override_output_path=place)
    return [first, second, third, last]


def be_killed(store: Path, scenario: str, last: int, told: int) -> None:
    fate = Fate(last, told)
    fate.watch_calls()
    if scenario == "again":
        StepRunner(1).run(steps(store))
    fate.awake = True
    StepRunner(1).run(steps(store), force=["a"] if scenario == "again" else [])


def main(root: Path, scenario: str) -> None:
    code, n = KILLED, 0
    while code == KILLED:
        n += 1
        heard, told = os.pipe()
        if not (child := os.fork()):
            try:
                be_killed(root / str(n), scenario, n, told)
            except BaseException as error:  # noqa: BLE001 - a child must not go on as its parent
                os.write(told, repr(error).encode())
                os._exit(1)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(told)
        print(n, code, os.read(heard, 1000).decode(), flush=True)
        os.close(heard)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
