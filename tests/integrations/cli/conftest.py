"""An experiment in a folder of its own, and the command as a user calls it there."""

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from treadle.artifacts import Store, open_store
from treadle.integrations.cli.app import main

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from treadle.integrations.cli.app import main; sys.exit(main())",
]
EXPERIMENT = """
import os
import time
from pathlib import Path

import fsspec

from treadle import StepContext, step


@step
def numbers(upto: int, ctx: StepContext) -> int:
    print(f"up to {upto}")
    with fsspec.open(f"{ctx.output_path}/numbers.txt", "w") as file:
        file.write("x" * upto)
    return upto


@step
def total(values: list[int]) -> int:
    while "GATE" in os.environ and not Path(os.environ["GATE"]).exists():
        Path(os.environ["GATE"] + ".reached").touch()
        time.sleep(0.01)
    if "BREAK" in os.environ:
        print("about to break")
        raise ValueError("no such [shard]")
    return sum(values)


@step
def report(value: int) -> str:
    return f"total {value}"


def build():
    return report(total([numbers(1), numbers(2)]))


def stream():
    for upto in range(5):
        yield numbers(upto)
"""
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Called:
    """What a call of the command gave."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Project:
    """A folder with an experiment in it; `target` is the name of its file."""

    folder: Path
    target: str
    capsys: pytest.CaptureFixture[str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __call__(self, *arguments: str) -> Called:
        """Call the command in this process."""
        self.capsys.readouterr()
        code = main(arguments)
        told = self.capsys.readouterr()
        return Called(code, told.out, told.err)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Call the command in a process of its own."""
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """End what a test that failed has left running: it would disturb those that follow."""
        for process in self.started:
            process.kill()
            process.communicate()

    @property
    def store(self) -> Store:
        """The store of the project."""
        return open_store(str(self.folder / ".treadle" / "store"))

    @property
    def text(self) -> str:
        """The experiment."""
        return (self.folder / self.target).read_text()

    def write(self, text: str) -> None:
        """Another experiment under the same name."""
        (self.folder / self.target).write_text(text)
        sys.modules.pop(Path(self.target).stem, None)

    def ids(self) -> dict[str, str]:
        """Name -> id of the steps built so far; of several of one name, one."""
        heads = [self.store.head(entry) for entry in self.store.ledger.places()]
        return {head.name: head.step_id for head in heads}


def until(process: subprocess.Popen[str], pattern: str) -> str:
    """What the process says on standard error, to the line that has the pattern."""
    told = ""
    for line in process.stderr or ():
        told += line
        if re.search(pattern, line):
            return told
    pytest.fail(f"{pattern} was not said in:\n{told}")


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Project]:
    """A project that nothing has run in."""
    # Each has a module of its own: what was imported before is not read again.
    target = f"experiment_{next(_NUMBERS)}.py"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("TREADLE_PREFIX", "BREAK", "GATE", "TREADLE_DEBUG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    made = Project(tmp_path, target, capsys)
    made.write(EXPERIMENT)
    yield made
    made.end()
    sys.modules.pop(Path(target).stem, None)


@pytest.fixture
def built(project: Project) -> Project:
    """The same, with all steps built."""
    assert project("run", project.target).code == 0
    return project
