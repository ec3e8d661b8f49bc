"""Two runs on one quarantine: whoever loses its outputs leaves the rejected rows of the other as they are."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from treadle.errors import ArtifactError
from treadle.storage import BadRow, Checkpoint, OutputSpec, Session, WorkUnit
from treadle.storage.quarantine import QuarantinePart, quarantine_for

UNIT = WorkUnit("00000-in", 0, "in", 1, "in:0")


@pytest.fixture(params=["local", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder or a prefix where nothing is."""
    if request.param == "local":
        return str(tmp_path)
    if request.param == "memory":
        return f"memory://{uuid4().hex}"
    return f"{request.getfixturevalue('s3')}/{uuid4().hex}"


def session_of(place: str, name: str, kept: Path | None = None) -> Session:
    """A run in which one row is good and one, from the source `name`, is bad."""
    session = Session(
        {"rows": OutputSpec("jsonl", f"{place}/rows")},
        quarantine=f"{place}/quarantine.jsonl",
        checkpoint=None if kept is None else Checkpoint(str(kept), "f"),
    )
    session.write("rows", UNIT, [{"id": 1}])
    if name:
        session.reject(BadRow(name, 1, "bad", b"{"))
    return session


def quarantined(place: str) -> list[str]:
    fs, path = fsspec.core.url_to_fs(f"{place}/quarantine.jsonl")
    fs.invalidate_cache()
    if not fs.exists(path):
        return []
    return [json.loads(line)["source"] for line in fs.cat_file(path).splitlines()]


def names(place: str) -> set[str]:
    """What lies beside the outputs."""
    fs, path = fsspec.core.url_to_fs(place)
    fs.invalidate_cache()
    return {each.rstrip("/").rpartition("/")[2] for each in fs.ls(path, detail=False)}


@pytest.mark.parametrize(("winner", "loser"), list(permutations(["first", "second", ""], 2)))
def test_who_loses_its_output_leaves_the_rejected_rows_of_who_won(
    place: str, winner: str, loser: str
) -> None:
    """Also when the one that won has none, or the one that lost."""
    with session_of(place, winner) as won, session_of(place, loser) as lost:
        won.commit()
        with pytest.raises(ArtifactError, match="output 'rows'"):
            lost.commit()
    assert quarantined(place) == [winner][: bool(winner)]
    assert names(place) == {"rows", *(["quarantine.jsonl"] if winner else [])}


def part_of(folder: Path, name: str) -> list[Path]:
    """The part of a unit in which one row, from the source `name`, is bad."""
    path = folder / f"{name}.part"
    part = QuarantinePart(path)
    part.add(BadRow(name, 1, "bad", b"{"))
    part.close()
    return [path]


def test_what_another_run_has_put_there_since_stays(
    place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The one that loses its outputs had put its rows there first."""
    parts = tmp_path_factory.mktemp("parts")
    lost, won = (quarantine_for(f"{place}/quarantine.jsonl") for _ in range(2))
    for each, name in ((lost, "lost"), (won, "won")):
        each.prepare()
        each.publish(part_of(parts, name))
    lost.withdraw()
    assert quarantined(place) == ["won"]
    lost.discard()
    won.discard()
    assert quarantined(place) == ["won"]
    assert names(place) == {"quarantine.jsonl"}


def test_a_checkpoint_on_another_disk_is_no_hindrance(tmp_path: Path) -> None:
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system")
    kept = other / f"treadle-{uuid4().hex}"
    with session_of(str(tmp_path), "bad", kept) as session:
        session.commit()
    assert quarantined(str(tmp_path)) == ["bad"]
    assert not kept.exists()
