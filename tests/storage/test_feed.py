from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import ArgumentError, ArtifactError, BadRowError, UnknownNameError
from treadle.storage import Dataset, OutputSpec, RowBatch, Session, list_units, read_batches, read_table


def batches_of(path: Path | str, batch_rows: int = 1024) -> list[RowBatch]:
    dataset = Dataset("jsonl", str(path))
    return [each for unit in list_units(dataset) for each in read_batches(dataset, unit, batch_rows)]


def put(path: Path, *lines: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


BAD_LINES = [
    b"\xff\xfe",
    b'{"a":',
    b"[]",
    b'{"a": NaN}',
    b'{"a": 1, "a": 1}',
    b'{"a": "text"}',
    b'{"a": "\0"}',
]


@settings(max_examples=60)
@given(
    kinds=st.lists(st.sampled_from(["good", "blank", *range(len(BAD_LINES))])),
    batch_rows=st.integers(1, 7),
    packed=st.booleans(),
)
def test_every_line_that_is_not_blank_is_a_row_or_a_bad_row(  # type: ignore[no-untyped-def]
    tmp_path_factory, kinds, batch_rows, packed
) -> None:
    """Nothing is dropped in silence: the account of a run begins here."""
    lines = [b'{"a": 0}']
    for number, kind in enumerate(kinds, start=2):
        lines.append(
            b'{"a": %d}' % number if kind == "good" else b" " if kind == "blank" else BAD_LINES[kind]
        )
    path = tmp_path_factory.mktemp("mix") / ("a.jsonl.gz" if packed else "a.jsonl")
    content = b"\n".join(lines)
    path.write_bytes(gzip.compress(content) if packed else content)
    batches = batches_of(path, batch_rows)
    assert all(
        len(each.lines) == each.rows.num_rows and len(each.lines) + len(each.bad) <= batch_rows
        for each in batches
    )
    good = [line for each in batches for line in each.lines]
    bad = [row.line for each in batches for row in each.bad]
    assert good == [1] + [number for number, kind in enumerate(kinds, start=2) if kind == "good"]
    assert bad == [number for number, kind in enumerate(kinds, start=2) if kind not in ("good", "blank")]
    assert [value for each in batches for value in each.rows.column("a").to_pylist()] == [0, *good[1:]]


def test_a_bad_row_names_its_place_and_shows_its_text(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", b'{"a": 1}', b"", b'{"b": "' + b"\xff" * 3000)
    [batch] = batches_of(path)
    [bad] = batch.bad
    assert (bad.source, bad.line) == (str(path), 3)
    assert (bad.raw, bad.offset, bad.kind) == (b'{"b": "' + b"\xff" * 3000, 10, "not-utf8")


MEASURE = """
import sys, tracemalloc
from treadle.storage import Dataset, list_units, read_batches

dataset = Dataset("jsonl", sys.argv[1])
tracemalloc.start()
rows = sum(each.rows.num_rows for each in read_batches(dataset, list_units(dataset)[0], 256))
print(rows, tracemalloc.get_traced_memory()[1])
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for number in range(100):
            file.write((json.dumps({"id": number, "text": "word " * 100}) + "\n").encode() * 200)
    # In a process of its own: what other threads of the test run allocate is none of its business.
    told = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    rows, peak = map(int, told.stdout.split())
    assert rows == 20_000
    assert peak < 4 * 2**20


def test_units_are_sorted_by_path_and_have_stable_names(tmp_path: Path) -> None:
    """Everything that is written is named after units, so their order is identity."""
    for name in ("b.jsonl", "a.jsonl.gz", "c.ndjson", ".hidden.jsonl", "_part.jsonl", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "sub.jsonl").mkdir()
    units = list_units(Dataset("jsonl", str(tmp_path)))
    assert [each.id for each in units] == ["00000-a", "00001-b", "00002-c"]
    assert [each.index for each in units] == [0, 1, 2]
    assert [Path(each.source).name for each in units] == ["a.jsonl.gz", "b.jsonl", "c.ndjson"]
    assert [each.id for each in list_units(Dataset("jsonl", f"{tmp_path}/[bc].*"))] == ["00000-b", "00001-c"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = put(tmp_path / "a[1].jsonl", b"{}")
    put(tmp_path / "a1.jsonl", b"{}")
    assert [each.source for each in list_units(Dataset("jsonl", str(path)))] == [str(path)]


def test_any_file_system_can_be_read() -> None:
    """A path is a URL; a unit keeps its scheme, so that whoever gets the unit can open it."""
    with fsspec.open("memory://feed/a.jsonl", "wb") as file:
        file.write(b'{"a": 1}\n')
    dataset = Dataset("jsonl", "memory://feed/*.jsonl")
    assert [each.source for each in list_units(dataset)] == ["memory:///feed/a.jsonl"]
    assert read_table(dataset).to_pylist() == [{"a": 1}]


def test_nothing_to_read_is_an_error_that_names_the_pattern(tmp_path: Path) -> None:
    """An empty result would look like a finished run."""
    for path in (tmp_path, tmp_path / "*.jsonl", tmp_path / "none.jsonl"):
        with pytest.raises(ArgumentError) as caught:
            list_units(Dataset("jsonl", str(path)))
        assert f"no jsonl file at {path};" in str(caught.value)
    with pytest.raises(UnknownNameError, match=r"known: .*jsonl, parquet"):
        list_units(Dataset("json", str(tmp_path)))


def test_a_missing_file_and_a_wrong_batch_size_are_errors_not_bad_rows(tmp_path: Path) -> None:
    dataset = Dataset("jsonl", str(put(tmp_path / "a.jsonl", b"{}")))
    [unit] = list_units(dataset)
    with pytest.raises(ArgumentError, match="batch_rows: expected at least 1, got 0"):
        read_batches(dataset, unit, 0)
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(FileNotFoundError):
        list(read_batches(dataset, unit))


def test_a_table_is_whole_or_raises_at_the_first_bad_row(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", b'{"a": 1}')
    put(tmp_path / "b.jsonl", b'{"a": 2.5, "b": "x"}')
    assert read_table(Dataset("jsonl", str(tmp_path))).to_pylist() == [
        {"a": 1.0, "b": None},
        {"a": 2.5, "b": "x"},
    ]
    put(tmp_path / "c.jsonl", b"", b"[", b"]")
    with pytest.raises(BadRowError) as caught:
        read_table(Dataset("jsonl", str(tmp_path)))
    assert (caught.value.source, caught.value.line) == (str(tmp_path / "c.jsonl"), 2)


def test_a_table_of_empty_files_has_the_declared_columns(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl")
    table = read_table(Dataset("jsonl", str(tmp_path), columns=("id", "text")))
    assert (table.num_rows, table.column_names) == (0, ["id", "text"])


def test_a_committed_output_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    """A part that vanished or was cut after the commit must not look like a smaller dataset."""
    dataset = Dataset("jsonl", str(tmp_path / "out"))
    source = Dataset("jsonl", str(put(tmp_path / "in" / "a.jsonl", b'{"a": 1}')))
    [unit] = list_units(source)
    with Session({"out": OutputSpec("jsonl", dataset.path)}) as session:
        session.write("out", unit, next(read_batches(source, unit)).rows)
        session.commit()
    part = tmp_path / "out" / "part-00000.jsonl"
    assert read_table(dataset).to_pylist() == [{"a": 1}]
    os.truncate(part, 3)
    with pytest.raises(
        ArtifactError, match=r"part-00000.jsonl: expected 8 bytes by _manifest.json, found 3 bytes"
    ):
        list_units(dataset)
    part.unlink()
    with pytest.raises(
        ArtifactError, match=r"part-00000.jsonl: expected 8 bytes by _manifest.json, found no file"
    ):
        list_units(dataset)
    (tmp_path / "out" / "stray.jsonl").write_bytes(b"{}")
    part.write_bytes(b'{"a":1}\n')
    with pytest.raises(ArtifactError, match=r"stray.jsonl: expected no file by _manifest.json"):
        list_units(dataset)
    with pytest.raises(ArgumentError, match="expected parquet files, it holds jsonl"):
        list_units(Dataset("parquet", str(tmp_path / "out")))


def test_an_output_committed_without_rows_has_no_units(tmp_path: Path) -> None:
    """A run that filtered everything has done its work; what reads it has nothing to do."""
    with Session({"out": OutputSpec("parquet", str(tmp_path / "out"))}) as session:
        session.commit()
    assert list_units(Dataset("parquet", str(tmp_path / "out"))) == ()


def test_no_reading_order_depends_on_the_hash_seed(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", b'{"z": 1, "y": 2}', b'{"x": 1, "w": {"q": 1, "p": 2}}')
    script = (
        "import sys; from treadle.storage import *; print(read_table(Dataset('jsonl', sys.argv[1])).schema)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_a_table_whose_files_do_not_go_together_is_named(tmp_path: Path) -> None:
    """Such a table is a side input: the error must lead to its files, not into Arrow."""
    put(tmp_path / "a.jsonl", b'{"id": 1}')
    put(tmp_path / "b.jsonl", b'{"id": "x"}')
    with pytest.raises(ArtifactError, match=r"do not go together: .*id has incompatible types"):
        read_table(Dataset("jsonl", str(tmp_path)))


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_named_like_data_is_not_passed_over(tmp_path: Path, kind: str) -> None:
    """The rows of a link whose file is gone would be missing from the result, and nobody told."""
    put(tmp_path / "a.jsonl", b'{"id": 1}')
    path = tmp_path / "b.jsonl"
    path.symlink_to("nowhere") if kind == "link" else os.mkfifo(path)
    with pytest.raises(ArgumentError, match=r"b.jsonl: expected a file, found a link to nothing"):
        list_units(Dataset("jsonl", str(tmp_path)))


def test_a_scheme_that_cannot_be_read_is_a_wrong_request() -> None:
    with pytest.raises(ArgumentError, match=r"cannot read nope://rows: .*nope"):
        list_units(Dataset("jsonl", "nope://rows"))
