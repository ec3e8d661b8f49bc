"""One unit written in whatever process, on one lane or several."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from treadle.errors import ArgumentError, RunError, UnknownNameError
from treadle.storage import BadRow, Dataset, OutputSpec, Session, WorkUnit, read_table

Tree = Callable[[Path], dict[str, bytes]]
UNIT = WorkUnit("00002-in", 2, "in", 1, "in:1")


def session_of(folder: Path, lanes: int = 1, backend: str = "jsonl") -> Session:
    """A session of one output and a quarantine."""
    spec = OutputSpec(backend, str(folder / "out"), lanes=lanes)
    return Session({"out": spec}, quarantine=str(folder / "bad.jsonl"))


def write_lanes(folder: Path, lanes: int, backend: str) -> None:
    """Ten writes of one unit."""
    with session_of(folder, lanes, backend) as session:
        with session.staging.open_unit(UNIT) as writer:
            for number in range(10):
                writer.write("out", pa.table({"n": [number]}))
            session.accept(writer.finish({}))
        session.commit()


def threads_of_lanes() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("lane ")]


@pytest.mark.parametrize("backend", ["jsonl", "parquet", "arrow"])
def test_each_write_goes_to_the_next_lane_and_the_bytes_are_always_the_same(
    tmp_path: Path, tree: Tree, backend: str
) -> None:
    for name in ("one", "two"):
        write_lanes(tmp_path / name, 3, backend)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    parts = sorted((tmp_path / "one" / "out").glob("part-*"))
    assert [each.name.partition(".")[0] for each in parts] == [f"part-00002-{lane}" for lane in range(3)]
    rows = [read_table(Dataset(backend, str(each))).column("n").to_pylist() for each in parts]
    assert rows == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert threads_of_lanes() == []


def test_what_fails_in_a_lane_is_raised_by_a_later_call_and_no_thread_stays(
    tmp_path: Path, tree: Tree
) -> None:
    session = session_of(tmp_path, lanes=2)
    writer = session.staging.open_unit(UNIT)
    writer.write("out", pa.table({"n": [float("nan")]}))
    with pytest.raises(RunError, match=r"column n: nan is not JSON"), writer:
        for _ in range(50):
            writer.write("out", pa.table({"n": [1.0]}))
        writer.finish({})
    session.abort()
    assert threads_of_lanes() == []
    assert tree(tmp_path) == {}


def test_a_unit_that_was_left_in_the_middle_leaves_no_files_and_no_threads(tmp_path: Path) -> None:
    with session_of(tmp_path, lanes=3) as session:
        with pytest.raises(ZeroDivisionError), session.staging.open_unit(UNIT) as writer:
            for number in range(10):
                writer.write("out", [{"n": number}])
                writer.reject(BadRow("in", 1, "no"))
            raise ZeroDivisionError
        folders = [session.staging.places["out"].folder, session.staging.rejects]
        assert [list(Path(str(each)).iterdir()) for each in folders] == [[], []]
        assert threads_of_lanes() == []


def test_an_incomplete_unit_keeps_only_its_rejected_rows(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        with session.staging.open_unit(UNIT) as writer:
            writer.write("out", [{"n": 1}])
            writer.reject(BadRow("in", 1, "no", b"x"))
            record = writer.finish({"rejected": 1}, complete=False)
        assert record.files == ()
        session.accept(record, complete=False)
        session.publish_quarantine()
    assert json.loads((tmp_path / "bad.jsonl").read_bytes())["raw"] == "x"
    assert not (tmp_path / "out").exists()


def test_the_record_has_the_sums_and_the_columns_of_the_files(tmp_path: Path) -> None:
    with session_of(tmp_path) as session, session.staging.open_unit(UNIT, "look") as writer:
        writer.write("out", [{"n": 1}, {"n": None}])
        record = writer.finish({"rows_in": 2})
        [file] = record.files
        content = Path(file.path).read_bytes()
        assert (file.output, file.lane, file.rows, file.bytes) == ("out", 0, 2, len(content))
        assert file.sha256 == hashlib.sha256(content).hexdigest()
        assert file.schema == pa.schema({"n": pa.int64()})
        assert (record.phase, record.unit, record.counts) == ("look", UNIT, {"rows_in": 2})


def test_the_quarantine_is_in_the_order_of_units_whoever_was_first(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        for index in (2, 0, 1):
            with session.staging.open_unit(WorkUnit(f"{index}", index, f"in-{index}", 1)) as writer:
                writer.reject(BadRow(f"in-{index}", 1, "no", b"\xff", 7, "not-utf8"))
                session.accept(writer.finish({}))
        session.commit()
    rows = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [each["source"] for each in rows] == ["in-0", "in-1", "in-2"]
    assert {(each["raw"], each["raw_base64"], each["offset"], each["kind"]) for each in rows} == {
        (None, "/w==", 7, "not-utf8")
    }


def test_what_was_not_declared_is_refused(tmp_path: Path) -> None:
    with (
        Session({"out": OutputSpec("jsonl", str(tmp_path / "out"))}) as session,
        session.staging.open_unit(UNIT) as writer,
    ):
        with pytest.raises(UnknownNameError, match=r"unknown output 'outt'; did you mean 'out'\?"):
            writer.write("outt", [{"n": 1}])
        with pytest.raises(ArgumentError, match=r"in:3: this session was given no quarantine file"):
            writer.reject(BadRow("in", 3, "no"))
