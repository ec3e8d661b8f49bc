"""Steps that are defined in a script, which is `__main__` for who runs it, and not for its workers."""

import subprocess
import sys
from pathlib import Path

import pytest

from treadle.artifacts import open_store

pytestmark = pytest.mark.timeout(180)
SCRIPT = """
import sys
from dataclasses import dataclass
from treadle import Artifact, StepContext, run, step
from treadle.fray import FrayClient

@dataclass(frozen=True)
class Corpus(Artifact):
    words: int

class Outer:
    @dataclass(frozen=True)
    class Point:
        x: int

@dataclass
class Unsendable:
    lock = open(__file__)

@step
def corpus(words: int, ctx: StepContext) -> Corpus:
    return Corpus(ctx.output_path, words)

@step
def point(source: Corpus) -> Outer.Point:
    assert type(source) is Corpus, type(source)
    return Outer.Point(source.words)

@step
def inner(point: Outer.Point, n: int) -> Outer.Point:
    assert type(point) is Outer.Point, type(point)
    return Outer.Point(point.x * n)

@step
def outer(n: int, ctx: StepContext) -> int:
    handles = [inner(point(corpus(n)), each) for each in range(n)]
    results = run(*handles, prefix=ctx.prefix)
    return sum(results[each.id].x for each in handles)

@step
def local() -> object:
    @dataclass
    class Local:
        x: int
    return Local(1)

if __name__ == "__main__":
    with FrayClient(sys.argv[1]) as client:
        handle = outer(3)
        try:
            run(local(), prefix=sys.argv[2], fray_client=client)
        except Exception as error:
            assert "cannot be kept" in str(error), error
        print(run(handle, point(corpus(5)), prefix=sys.argv[2], fray_client=client)[handle.id])
"""


@pytest.mark.parametrize("given", ["file", "option", "module"])
def test_a_script_gives_the_same_on_threads_and_in_processes(tmp_path: Path, given: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT if given != "option" else "")
    how = {
        "file": ["script.py"],
        "option": ["-c", "__file__ = 'script.py'" + SCRIPT],
        "module": ["-m", "script"],
    }
    for backend in ("local", "processes"):
        command = [sys.executable, *how[given], backend, backend]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert ran.stdout == "9\n", ran.stderr
    assert built(tmp_path / "local") == built(tmp_path / "processes")
    commands = {note.command for note in open_store(str(tmp_path / "processes")).ledger.runs()}
    assert len(commands) == 1, "a run inside a step has the command of the run around it"
    assert "processes processes" in commands.pop()


def built(store: Path) -> dict[str, object]:
    """Place -> what the step returned, of what type, by which code, without what is of one run."""
    found = open_store(str(store))
    records = {each.place: found.records(each.place)[-1] for each in found.ledger.places()}
    return {
        place: (each.head.code_hash, each.body.value, each.body.config_text, each.body.artifact_type)
        for place, each in records.items()
    }
