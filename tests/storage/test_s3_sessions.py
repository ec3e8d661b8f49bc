"""Whole sessions on an object store: the quarantine appears with the outputs, a checkpoint goes on here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest

from tests.storage.checkpointed import PHASE, units_of, write_unit
from treadle.errors import ArgumentError, ArtifactError
from treadle.storage import Checkpoint, Dataset, OutputSpec, Session, read_table

UNITS = units_of(3)


@pytest.fixture(params=["memory", "s3"])
def url(request: pytest.FixtureRequest) -> str:
    """A prefix where nothing is."""
    if request.param == "memory":
        return f"memory://{uuid4().hex}"
    return f"{request.getfixturevalue('s3')}/{uuid4().hex}"


@pytest.fixture
def bucket(s3: str) -> str:
    """The same on S3 only."""
    return f"{s3}/{uuid4().hex}"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a session on an object store stages."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def session_at(url: str, kept: Path | None = None) -> Session:
    return Session(
        {name: OutputSpec("jsonl", f"{url}/{name}") for name in ("rows", "table")},
        scratch={"spill": OutputSpec("arrow", f"{url}/spill")},
        quarantine=f"{url}/quarantine.jsonl",
        checkpoint=None if kept is None else Checkpoint(str(kept), "f"),
    )


def objects(url: str) -> list[str]:
    """Every object below, by its path; the folder of a publication by its kind."""
    fs, path = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return sorted(str(each).removeprefix(f"{path}/") for each in fs.find(path))


def quarantined(url: str) -> list[str]:
    """The sources of the rows in the quarantine."""
    with fsspec.open(f"{url}/quarantine.jsonl") as file:
        return [json.loads(line)["source"] for line in file]


def rows(url: str) -> list[int]:
    return [each["id"] for each in read_table(Dataset("jsonl", f"{url}/rows")).to_pylist()]


def do(session: Session, *units: Any) -> int:
    """The units that are not done; how many there were."""
    done = 0
    for unit in units:
        if session.finished(PHASE, unit) is None:
            session.accept(write_unit(session.staging, unit))
            done += 1
    return done


def test_the_quarantine_appears_with_the_outputs(url: str, temporary: Path) -> None:
    with session_at(url) as session:
        do(session, *UNITS)
        assert "quarantine.jsonl" not in objects(url)
        session.commit()
    assert quarantined(url) == ["in-0", "in-1", "in-2"]
    assert rows(url) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert list(temporary.iterdir()) == []


def test_nothing_is_there_after_an_abort(url: str, temporary: Path) -> None:
    with session_at(url) as session:
        do(session, *UNITS)
    assert objects(url) == []
    assert list(temporary.iterdir()) == []


def test_a_commit_that_fails_takes_the_quarantine_back(url: str) -> None:
    with session_at(url) as session:
        do(session, *UNITS)
        fsspec.core.url_to_fs(url)[0].pipe_file(f"{url}/table/_manifest.json", b"{}")
        with pytest.raises(ArtifactError, match=r"table/_manifest.json: not an output manifest"):
            session.commit()
    assert objects(url) == ["table/_manifest.json"]


def test_the_quarantine_can_appear_alone(url: str) -> None:
    """For a run that fails because of its bad rows."""
    with session_at(url) as session:
        do(session, UNITS[1])
        session.publish_quarantine()
    assert objects(url) == ["quarantine.jsonl"]
    assert quarantined(url) == ["in-1"]


def test_a_run_without_bad_rows_removes_the_quarantine_of_a_failed_one(url: str) -> None:
    with session_at(url) as session:
        do(session, UNITS[1])
        session.publish_quarantine()
    with session_at(url) as session:
        session.write("rows", UNITS[0], [{"id": 1}])
        session.commit()
    assert "quarantine.jsonl" not in objects(url)


def test_an_output_around_the_quarantine_is_refused(url: str) -> None:
    with pytest.raises(ArgumentError, match=r"cannot write both .* expected paths apart from each other"):
        Session({"rows": OutputSpec("jsonl", f"{url}/")}, quarantine=f"{url}/quarantine.jsonl")


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_a_kind_of_storage_that_outputs_cannot_have_is_refused_before_any_work(scheme: str) -> None:
    with pytest.raises(ArgumentError, match=rf"cannot write an output to {scheme}://.*write there, and copy"):
        session_at(f"{scheme}://bucket/run")


def test_finished_units_are_kept_on_this_machine(url: str, tmp_path: Path, temporary: Path) -> None:
    kept = tmp_path / "kept"
    with session_at(url, kept) as session:
        do(session, *UNITS[:2])
    assert objects(url) == []
    with session_at(url, kept) as session:
        assert do(session, *UNITS) == 1
        with pytest.raises(ArtifactError, match="another run has this checkpoint"):
            session_at(url, kept)
        session.commit()
    assert rows(url) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert quarantined(url) == ["in-0", "in-1", "in-2"]
    assert not kept.exists()
    assert list(temporary.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.storage.test_s3_sessions import UNITS, do, session_at
from treadle.storage.target_objects import ObjectTarget

url, kept, moment = sys.argv[1:]
steps = {"upload": "_upload", "manifest": "_put", "end": "settle"}

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def kill_after(done):
    def act(*given):
        done(*given)
        kill()
    return act

with session_at(url, Path(kept)) as session:
    do(session, *UNITS)
    if moment != "work":
        name = steps[moment]
        setattr(ObjectTarget, name, kill_after(getattr(ObjectTarget, name)))
        session.commit()
    kill()
"""


@pytest.mark.parametrize("moment", ["work", "upload", "manifest", "end"])
def test_a_killed_run_goes_on_in_another_process_and_leaves_no_object_behind(
    bucket: str, tmp_path: Path, moment: str
) -> None:
    kept = tmp_path / "kept"
    command = [sys.executable, "-c", KILLED, bucket, str(kept), moment]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=environment, check=False).returncode == -9
    with session_at(bucket, kept) as session:
        assert do(session, *UNITS) == 0
        manifests = session.commit()
    assert rows(bucket) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    named = {f"{name}/{each.name}" for name, manifest in manifests.items() for each in manifest.files}
    assert set(objects(bucket)) == {
        "quarantine.jsonl",
        "rows/_manifest.json",
        "table/_manifest.json",
        *named,
    }
    assert not kept.exists()
