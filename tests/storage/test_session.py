from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import ArgumentError, ArtifactError, RunError, UnknownNameError
from treadle.storage import (
    BadRow,
    Dataset,
    OutputManifest,
    OutputSpec,
    Session,
    WorkUnit,
    list_units,
    read_batches,
    read_output_manifest,
    read_table,
    write_backend_for,
)

Tree = Callable[[Path], dict[str, bytes]]

BAD = BadRow("in.jsonl", 3, "not JSON", "{né".encode())


def unit_at(index: int) -> WorkUnit:
    return WorkUnit(f"{index:05d}-in", index, f"in-{index}.jsonl", 10)


def rows_of(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
cells: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "text": texts,
    "list": st.lists(st.integers(-5, 5) | st.none(), max_size=3),
    "object": st.fixed_dictionaries({"x": texts | st.none(), "y": st.lists(st.booleans(), max_size=2)}),
}
json_rows = st.lists(
    st.fixed_dictionaries({name: st.none() | cell for name, cell in cells.items()}), min_size=1, max_size=20
)


@settings(max_examples=50)
@given(rows=json_rows, batch_rows=st.integers(1, 6), backend=st.sampled_from(["jsonl", "parquet"]))
def test_rows_written_through_a_session_are_read_back(  # type: ignore[no-untyped-def]
    tmp_path_factory, rows: list[dict[str, Any]], batch_rows: int, backend: str
) -> None:
    """jsonl in, session, any format out, read: the same rows in the same order with their numbers."""
    folder = tmp_path_factory.mktemp("round")
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source, target = Dataset("jsonl", str(folder / "in.jsonl")), Dataset(backend, str(folder / "out"))
    [unit] = list_units(source)
    with Session({"out": OutputSpec(backend, target.path)}) as session:
        for batch in read_batches(source, unit, batch_rows):
            assert batch.bad == ()
            session.write("out", unit, batch.rows)
        manifest = session.commit()["out"]
    assert manifest.rows == len(rows)
    assert read_table(target).to_pylist() == rows
    assert [line for batch in read_batches(target, list_units(target)[0], 3) for line in batch.lines] == [
        *range(1, len(rows) + 1)
    ]


@pytest.fixture
def write_everything(tree: Tree) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        outputs = {
            "packed": OutputSpec("jsonl", str(folder / "packed"), compression="gzip"),
            "plain": OutputSpec("jsonl", str(folder / "plain")),
            "table": OutputSpec("parquet", str(folder / "table")),
        }
        with Session(outputs, quarantine=str(folder / "quarantine.jsonl")) as session:
            for index in (0, 3):
                for name in outputs:
                    session.write(name, unit_at(index), rows_of(id=[index, 2], text=["é", None]))
                    session.write(name, unit_at(index), pa.table({"id": [7], "text": ["\u2028"]}))
            session.reject(BAD)
            assert {name for name in tree(folder) if not name.startswith(".")} == set()
            session.commit()

    return write


def test_a_commit_shows_parts_manifest_and_quarantine(
    tmp_path: Path, write_everything: Callable[[Path], None], tree: Tree
) -> None:
    write_everything(tmp_path)
    files = tree(tmp_path)
    assert sorted(files) == [
        "packed/",
        "packed/_manifest.json",
        "packed/part-00000.jsonl.gz",
        "packed/part-00003.jsonl.gz",
        "plain/",
        "plain/_manifest.json",
        "plain/part-00000.jsonl",
        "plain/part-00003.jsonl",
        "quarantine.jsonl",
        "table/",
        "table/_manifest.json",
        "table/part-00000.parquet",
        "table/part-00003.parquet",
    ]
    text = '{"id":0,"text":"é"}\n{"id":2,"text":null}\n{"id":7,"text":"\u2028"}\n'
    assert files["plain/part-00000.jsonl"].decode() == text
    assert gzip.decompress(files["packed/part-00000.jsonl.gz"]).decode() == text
    assert json.loads(files["quarantine.jsonl"]) == {
        "source": "in.jsonl",
        "line": 3,
        "offset": None,
        "kind": "rejected",
        "reason": "not JSON",
        "raw": "{né",
        "raw_base64": None,
        "raw_bytes": 4,
    }
    manifest = read_output_manifest(tmp_path / "table")
    assert (manifest.rows, manifest.columns) == (6, {"id": "int64", "text": "string"})
    for each in manifest.files:
        content = files[f"table/{each.name}"]
        assert (each.rows, each.bytes, each.sha256) == (3, len(content), hashlib.sha256(content).hexdigest())


def test_the_same_rows_give_the_same_bytes(
    tmp_path: Path, write_everything: Callable[[Path], None], tree: Tree
) -> None:
    """Artifacts are compared by their sums, so neither time nor place may be in a file."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_everything(tmp_path / name)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_an_empty_folder_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with Session({"out": OutputSpec("jsonl", str(tmp_path / "out"))}) as session:
        session.commit()
    assert read_output_manifest(tmp_path / "out").rows == 0


def test_an_aborted_session_leaves_nothing_and_may_be_aborted_again(tmp_path: Path, tree: Tree) -> None:
    session = Session(
        {"out": OutputSpec("parquet", str(tmp_path / "out"))}, quarantine=str(tmp_path / "q.jsonl")
    )
    session.write("out", unit_at(0), rows_of(id=[1]))
    session.reject(BAD)
    session.abort()
    session.abort()
    assert tree(tmp_path) == {}
    for act in (
        session.commit,
        lambda: session.reject(BAD),
        lambda: session.write("out", unit_at(0), rows_of(id=[1])),
    ):
        with pytest.raises(RunError, match="this session is over"):
            act()


def test_an_abort_after_a_commit_takes_nothing_away(tmp_path: Path) -> None:
    session = Session({"out": OutputSpec("parquet", str(tmp_path / "out"))})
    session.write("out", unit_at(0), rows_of(id=[1]))
    session.commit()
    session.abort()
    assert read_table(Dataset("parquet", str(tmp_path / "out"))).to_pylist() == [{"id": 1}]


def test_a_block_that_fails_aborts_and_keeps_its_error(tmp_path: Path, tree: Tree) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        Session({"out": OutputSpec("jsonl", str(tmp_path / "out"))}) as session,
    ):
        session.write("out", unit_at(0), rows_of(id=[1 // 0]))
    assert tree(tmp_path) == {}


def test_a_commit_that_fails_half_way_shows_nothing(tmp_path: Path, tree: Tree) -> None:
    """Two outputs of one run belong together: when the second cannot appear, the first must not stay."""
    outputs = {name: OutputSpec("jsonl", str(tmp_path / name)) for name in ("a", "b")}
    session = Session(outputs, quarantine=str(tmp_path / "q.jsonl"))
    session.reject(BAD)
    for name in outputs:
        session.write(name, unit_at(0), rows_of(id=[1]))
    (tmp_path / "b").write_bytes(b"somebody was faster")
    with pytest.raises(ArtifactError, match="output 'b'"):
        session.commit()
    assert tree(tmp_path) == {"b": b"somebody was faster"}


def test_the_second_of_two_sessions_on_one_output_is_refused_at_its_commit(tmp_path: Path) -> None:
    """Both live, so neither clears what the other has staged; the first commit stands."""
    outputs = {"out": OutputSpec("jsonl", str(tmp_path / "out"))}
    quarantine = str(tmp_path / "q.jsonl")
    sleeper = Session(outputs, quarantine=quarantine)
    sleeper.write("out", unit_at(0), rows_of(id=[1]))
    sleeper.reject(BAD)
    with Session(outputs, quarantine=quarantine) as other:
        other.write("out", unit_at(0), rows_of(id=[2]))
        sleeper.write("out", unit_at(1), rows_of(id=[1]))
        other.commit()
    with pytest.raises(ArtifactError, match=r"output 'out': .* is already there"):
        sleeper.commit()
    assert read_table(Dataset("jsonl", outputs["out"].path)).to_pylist() == [{"id": 2}]
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_columns_may_widen_within_an_output_but_not_change(tmp_path: Path) -> None:
    """Shards of one dataset differ in what they lack; where they contradict each other, the run stops and
    says where.
    """
    dataset = Dataset("parquet", str(tmp_path / "out"))
    with Session({"out": OutputSpec("parquet", dataset.path)}) as session:
        session.write("out", unit_at(0), pa.table({"a": pa.nulls(2)}))
        session.write("out", unit_at(0), rows_of(a=["x"], b=[1]))
        session.write("out", unit_at(1), rows_of(b=[1.5]))
        manifest = session.commit()["out"]
    assert manifest.columns == {"a": "string", "b": "double"}
    assert [each.rows for each in manifest.files] == [3, 1]
    assert read_table(dataset).to_pylist() == [
        {"a": None, "b": None},
        {"a": None, "b": None},
        {"a": "x", "b": 1.0},
        {"a": None, "b": 1.5},
    ]


def drifting(path: str, on_type_change: Literal["refuse", "text"], backend: str) -> OutputManifest:
    with Session({"out": OutputSpec(backend, path, on_type_change=on_type_change)}) as session:
        session.write("out", unit_at(0), rows_of(a=[1, None], b=[0.5, 2.0]))
        session.write("out", unit_at(1), rows_of(a=["x", "2"], b=[None, 3.0]))
        session.write("out", unit_at(2), rows_of(a=[True, False], b=[1.0, 1.0]))
        return session.commit()["out"]


@pytest.mark.parametrize("backend", ["jsonl", "parquet", "arrow"])
def test_a_column_of_two_types_is_refused_with_both_places(tmp_path: Path, backend: str, tree: Tree) -> None:
    reason = (
        r"column 'a' is string in the rows of in-1.jsonl, but int64 in those of in-0.jsonl; .*on_type_change"
    )
    with pytest.raises(RunError, match=reason):
        drifting(str(tmp_path / "out"), "refuse", backend)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("backend", ["csv", "jsonl", "parquet", "arrow"])
def test_files_that_lack_columns_get_them(tmp_path: Path, backend: str) -> None:
    """Whoever takes the header of the first file for that of all must be right."""
    with Session({"out": OutputSpec(backend, str(tmp_path / "out"))}) as session:
        session.write("out", unit_at(0), rows_of(x=[1], y=["a"]))
        session.write("out", unit_at(1), rows_of(y=["b"]))
        session.write("out", unit_at(2), rows_of(z=[None, "c"], x=[0.5, 2.0]))
        session.commit()
    one = {"x": "1", "y": "a", "z": None} if backend == "csv" else {"x": 1.0, "y": "a", "z": None}
    dataset = Dataset(backend, str(tmp_path / "out"))
    batches = [batch.rows for unit in list_units(dataset) for batch in read_batches(dataset, unit)]
    assert [each.schema.names for each in batches] == [["x", "y", "z"]] * 3
    rows = [row for each in batches for row in each.to_pylist()]
    assert rows[0] == one
    assert [row["y"] for row in rows] == ["a", "b", None, None]
    assert [row["z"] for row in rows] == [None, None, None, "c"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("backend", ["jsonl", "parquet", "arrow", "csv"])
def test_a_unit_without_rows_is_of_any_type(tmp_path: Path, backend: str, order: tuple[int, int]) -> None:
    """A unit of which every row was bad has nothing to say about the others."""
    empty, full = order
    with Session({"out": OutputSpec(backend, str(tmp_path / "out"))}) as session:
        writes = {empty: rows_of(x=[1], y=["a"]).slice(0, 0), full: rows_of(x=["one"], y=["a"])}
        for at in (0, 1):
            session.write("out", unit_at(at), writes[at])
        session.commit()
    batches = read_table(Dataset(backend, str(tmp_path / "out")))
    assert batches.to_pylist() == [{"x": "one", "y": "a"}]


@pytest.mark.parametrize("backend", ["jsonl", "parquet", "arrow"])
def test_a_whole_number_that_is_no_fraction_is_told_with_its_place(tmp_path: Path, backend: str) -> None:
    with (
        pytest.raises(
            RunError, match=r"column 'x' has whole numbers in the rows of in-0.jsonl and fractions in others"
        ),
        Session({"out": OutputSpec(backend, str(tmp_path / "out"))}) as session,
    ):
        session.write("out", unit_at(0), rows_of(x=[2**53 + 1]))
        session.write("out", unit_at(1), rows_of(x=[0.5]))
        session.commit()


@pytest.mark.parametrize("backend", ["jsonl", "parquet", "arrow"])
def test_a_column_of_two_types_becomes_text_where_that_is_asked(tmp_path: Path, backend: str) -> None:
    """Every file has the one type then, and no value is lost."""
    manifest = drifting(str(tmp_path / "out"), "text", backend)
    assert manifest.columns == {"a": "string", "b": "double"}
    assert read_table(Dataset(backend, str(tmp_path / "out"))).to_pydict() == {
        "a": ["1", None, "x", "2", "true", "false"],
        "b": [0.5, 2.0, None, 3.0, 1.0, 1.0],
    }


@pytest.mark.parametrize(
    ("backend", "rows", "reason"),
    [
        (
            "jsonl",
            rows_of(a=[1], b=[float("nan")]),
            "column b: nan is not JSON",
        ),
        ("jsonl", rows_of(a=[[b"x"]]), "column a: binary has no JSON form"),
        ("parquet", rows_of(a=[{}]), "column a: parquet has no object without fields"),
        (
            "parquet",
            pa.RecordBatch.from_arrays([pa.array([1])] * 2, ["a", "a"]),
            "column 'a' appears more than once",
        ),
    ],
)
def test_rows_that_a_format_cannot_hold_are_refused_with_the_column(
    tmp_path: Path, backend: str, rows: pa.RecordBatch, reason: str
) -> None:
    with (
        Session({"out": OutputSpec(backend, str(tmp_path / "out"))}) as session,
        pytest.raises(RunError) as caught,
    ):
        session.write("out", unit_at(0), rows)
    assert reason in str(caught.value)
    assert "part-00000" in str(caught.value)


def test_an_output_whose_write_failed_is_never_committed(tmp_path: Path, tree: Tree) -> None:
    """Some of the rows may be in the file already, so whoever goes on after the error must not publish it."""
    rows = pa.table({"a": [0.5] * 2000 + [float("nan")]})
    session = Session({"out": OutputSpec("jsonl", str(tmp_path / "out"))})
    with pytest.raises(RunError, match="column a: nan is not JSON"):
        session.write("out", unit_at(0), rows)
    for go_on in (lambda: session.write("out", unit_at(0), rows_of(a=[0.5])), session.commit):
        with pytest.raises(RunError, match="output 'out': a write failed, so its rows are not all there"):
            go_on()
    assert tree(tmp_path) == {}


def test_units_are_written_one_after_the_other(tmp_path: Path) -> None:
    """A unit that comes back would need its file again, which is finished; two units of one index would
    share it.
    """
    with Session({"out": OutputSpec("jsonl", str(tmp_path / "out"))}) as session:
        session.write("out", unit_at(0), rows_of(id=[1]))
        session.write("out", unit_at(1), rows_of(id=[1]))
        with pytest.raises(
            RunError, match=r"output 'out': unit 00000-in is finished, yet rows of unit 00000-in came"
        ):
            session.write("out", unit_at(0), rows_of(id=[1]))
        with pytest.raises(UnknownNameError, match=r"unknown output 'outt'; did you mean 'out'\?"):
            session.write("outt", unit_at(1), rows_of(id=[1]))
        with pytest.raises(ArgumentError, match=r"in.jsonl:3: this session was given no quarantine file"):
            session.reject(BAD)


def test_the_quarantine_is_that_of_the_committed_run(tmp_path: Path) -> None:
    """A file left by an attempt that was killed in the middle of its commit would accuse rows of another
    run.
    """
    quarantine = tmp_path / "q.jsonl"
    quarantine.write_text("old\n")
    with Session({"a": OutputSpec("jsonl", str(tmp_path / "a"))}, quarantine=str(quarantine)) as session:
        session.commit()
    assert not quarantine.exists()


def test_metadata_of_a_schema_is_not_kept(tmp_path: Path) -> None:
    """Other tools put their version and an index there, which would make equal rows different files."""
    with Session({"out": OutputSpec("parquet", str(tmp_path / "out"))}) as session:
        session.write("out", unit_at(0), pa.table({"a": [1]}).replace_schema_metadata({"by": "somebody"}))
        session.commit()
    assert not pq.read_schema(tmp_path / "out" / "part-00000.parquet").metadata


def test_a_backend_is_known_by_name() -> None:
    assert write_backend_for("parquet").codec(None) == (".parquet", "zstd")
    with pytest.raises(UnknownNameError, match=r"unknown format 'parket'; did you mean 'parquet'\?"):
        write_backend_for("parket")


def test_a_committed_folder_is_a_dataset_to_other_tools(
    tmp_path: Path, write_everything: Callable[[Path], None]
) -> None:
    """The manifest inside must not be in the way of whoever reads the whole folder."""
    write_everything(tmp_path)
    assert pq.read_table(tmp_path / "table").num_rows == 6


def test_a_bad_row_of_a_file_with_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """A name the system allows must not cost the run."""
    with Session({}, quarantine=str(tmp_path / "bad.jsonl")) as session:
        session.reject(BadRow("\udcff.jsonl", 1, "not JSON", b"x"))
        session.commit()
    assert json.loads((tmp_path / "bad.jsonl").read_bytes())["source"] == "\udcff.jsonl"
