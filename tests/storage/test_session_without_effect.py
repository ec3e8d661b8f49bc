"""Sessions that are refused, run out of disk or are killed: nothing of them may be seen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.errors import ArgumentError, ArtifactError, RunError, UnknownNameError
from treadle.storage import OutputSpec, Session

Tree = Callable[[Path], dict[str, bytes]]


def test_an_output_that_is_there_is_refused_before_any_effect(tmp_path: Path, tree: Tree) -> None:
    """What a finished run made is never overwritten, and a refused session leaves no trace in its other
    outputs.
    """
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "kept").write_bytes(b"x")
    before = tree(tmp_path)
    with pytest.raises(
        ArtifactError, match=f"output 'b': {tmp_path}/b is already there and is never overwritten; remove"
    ):
        Session(
            {"a": OutputSpec("jsonl", str(tmp_path / "a")), "b": OutputSpec("jsonl", str(tmp_path / "b"))}
        )
    assert tree(tmp_path) == before


def test_what_is_asked_wrongly_is_refused_before_any_effect(tmp_path: Path, tree: Tree) -> None:
    one = OutputSpec("jsonl", str(tmp_path / "out"))
    with pytest.raises(UnknownNameError, match="unknown format 'csw'"):
        Session({"a": one, "b": OutputSpec("csw", str(tmp_path / "b"))})
    with pytest.raises(UnknownNameError, match=r"unknown compression 'snappy' \(known: gzip, none, zstd\)"):
        Session({"a": OutputSpec("jsonl", str(tmp_path / "b"), compression="snappy")})
    with pytest.raises(ArgumentError, match=r"cannot write both .*/out and .*/out: expected paths apart"):
        Session({"a": one, "b": OutputSpec("parquet", f"file://{tmp_path}/out")})
    with pytest.raises(ArgumentError, match="expected paths apart from each other"):
        Session({"a": one}, quarantine=str(tmp_path / "out" / "quarantine.jsonl"))
    assert tree(tmp_path) == {}


FULL_DISK = """
import random, resource, sys
import pyarrow as pa
from treadle.errors import RunError
from treadle.storage import OutputSpec, Session, WorkUnit
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
backend, compression, path = sys.argv[1:]
unit = WorkUnit("00000-a", 0, "a", 1)
try:
    with Session({"out": OutputSpec(backend, path, compression=compression)}) as session:
        for number in range(40):
            session.write("out", unit, pa.table({"n": [random.random() for _ in range(2000)]}))
        session.commit()
except RunError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("backend", "compression"), [("jsonl", "none"), ("jsonl", "gzip"), ("parquet", "zstd")]
)
def test_a_disk_that_is_full_is_an_error_that_names_the_file(
    tmp_path: Path, tree: Tree, backend: str, compression: str
) -> None:
    """The system refuses to let a file grow, as a full disk does; nothing half-written may stay."""
    command = [sys.executable, "-W", "error", "-c", FULL_DISK, backend, compression, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"cannot write {tmp_path}/.out.staging-" in done.stdout
    assert "part-00000" in done.stdout
    assert done.stdout.endswith("see why a file may not grow so large there, and run again\n")
    assert done.stderr == ""
    assert tree(tmp_path) == {}


KILLED = """
import os, signal, sys
import pyarrow as pa
from treadle.storage import OutputSpec, Session, WorkUnit
folder, moment = sys.argv[1], int(sys.argv[2])
outputs = {name: OutputSpec(name, f"{folder}/{name}") for name in ("jsonl", "parquet")}
with Session(outputs, quarantine=f"{folder}/q.jsonl") as session:
    for index in range(3):
        for number in range(4):
            if moment == index * 4 + number:
                os.kill(os.getpid(), signal.SIGKILL)
            rows = pa.table({"n": range(number * 20_000)})
            for name in outputs:
                session.write(name, WorkUnit(f"{index}", index, "a", 1), rows)
    session.commit()
"""


def test_a_killed_writer_leaves_nothing_visible_and_the_next_is_as_if_nothing_had_been(
    tmp_path: Path,
    tree: Tree,
) -> None:
    """The promise of the project, at the scale of one output."""

    def write(folder: str, moment: int) -> int:
        command = [sys.executable, "-c", KILLED, str(tmp_path / folder), str(moment)]
        return subprocess.run(command, check=False).returncode

    assert write("undisturbed", -1) == 0
    for moment in (2, 7, 11):
        assert write("disturbed", moment) == -9
        assert all(each.name.startswith(".") for each in (tmp_path / "disturbed").iterdir())
    assert write("disturbed", -1) == 0
    assert tree(tmp_path / "disturbed") == tree(tmp_path / "undisturbed")


def test_two_spellings_of_one_path_are_one_path(tmp_path: Path) -> None:
    """The second output would clear what the first has staged."""
    with pytest.raises(ArgumentError, match="paths apart"):
        Session(
            {"a": OutputSpec("jsonl", str(tmp_path / "x")), "b": OutputSpec("jsonl", f"{tmp_path}/y/../x")}
        )


def test_the_root_of_the_file_system_is_taken() -> None:
    """It has no name, so nothing can be staged beside it."""
    with pytest.raises(ArtifactError, match="already there"):
        Session({"a": OutputSpec("jsonl", "/")})


def test_an_output_below_a_file_says_so_and_nothing_else(tmp_path: Path) -> None:
    """The clean-up of what could not be made must not add errors of its own."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"Not a directory|File exists: .*/file'") as caught:
        Session({"a": OutputSpec("jsonl", str(tmp_path / "file" / "a"))})
    assert not hasattr(caught.value, "__notes__")
