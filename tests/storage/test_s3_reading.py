"""Reading from an object store: list, split, read, and what changes with the content."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from treadle.errors import ArgumentError, RunError
from treadle.storage import Dataset, OutputFile, OutputManifest, list_units, read_batches, read_table


def put(url: str, content: bytes) -> None:
    with fsspec.open(url, "wb") as file:
        file.write(content)


def lines(first: int, end: int) -> bytes:
    return b"".join(json.dumps({"id": each}).encode() + b"\n" for each in range(first, end))


def ids(dataset: Dataset) -> list[int]:
    return [
        row["id"]
        for unit in list_units(dataset)
        for batch in read_batches(dataset, unit)
        for row in batch.records
    ]


def test_a_folder_of_jsonl_is_read_in_parts(s3: str) -> None:
    put(f"{s3}/reading/jsonl/b.jsonl", lines(100, 300))
    put(f"{s3}/reading/jsonl/a.jsonl", lines(0, 100))
    put(f"{s3}/reading/jsonl/_notes.jsonl", b"no rows")
    for path in (f"{s3}/reading/jsonl", f"{s3}/reading/jsonl/*[ab].jsonl"):
        dataset = Dataset("jsonl", path, split_bytes=1500)
        units = list_units(dataset)
        assert [each.id for each in units] == ["00000-a", "00001-b@0", "00002-b@1500"]
        assert units[0].source == f"{s3}/reading/jsonl/a.jsonl"
        assert ids(dataset) == list(range(300))


def test_parquet_is_read_by_row_groups(s3: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "a.parquet", row_group_size=100)
    put(f"{s3}/reading/parquet/a.parquet", (tmp_path / "a.parquet").read_bytes())
    dataset = Dataset("parquet", f"{s3}/reading/parquet/a.parquet", split_bytes=2000)
    assert len(list_units(dataset)) > 2
    assert ids(dataset) == list(range(1000))


def test_the_identity_follows_the_content_of_the_same_size(s3: str) -> None:
    """Without asking for the content: the store has a tag of it. What others wrote meanwhile is seen."""
    url = f"{s3}/reading/change/a.jsonl"
    seen = set()
    for content in (b'{"id": 1}\n', b'{"id": 2}\n', b'{"id": 3}\n{"id": 4}\n'):
        # A client of its own, as another machine has: the listing that this process keeps is not told.
        fsspec.filesystem("s3", skip_instance_cache=True).pipe(url, content)
        [unit] = list_units(Dataset("jsonl", url))
        assert unit.bytes == len(content)
        seen.add(unit.identity)
    assert len(seen) == 3


def test_a_committed_output_is_read_as_its_manifest_says(s3: str) -> None:
    folder = f"{s3}/reading/out"
    names = ("data-0000000b/part-00000.jsonl", "data-0000000a/part-00000.jsonl")
    put(f"{folder}/{names[0]}", lines(0, 10))
    put(f"{folder}/data-0000000c/part-00000.jsonl", lines(90, 99))
    with pytest.raises(ArgumentError, match="no committed output yet"):
        list_units(Dataset("jsonl", folder))
    put(f"{folder}/{names[1]}", lines(10, 20))
    files = tuple(OutputFile(name, 10, size, "0" * 64) for name, size in zip(names, (100, 110), strict=True))
    manifest = OutputManifest("out", folder, "jsonl", 20, files, {"id": "int64"})
    put(f"{folder}/_manifest.json", manifest.to_json())
    assert read_table(Dataset("jsonl", folder)).column("id").to_pylist() == list(range(20))


def test_what_is_not_there_is_named(s3: str) -> None:
    for path in (f"{s3}/reading/none", f"{s3}/reading/none/*.jsonl"):
        with pytest.raises(ArgumentError) as caught:
            list_units(Dataset("jsonl", path))
        assert f"no jsonl file at {path};" in str(caught.value)
    put(f"{s3}/reading/gone/a.jsonl", b"{}\n")
    dataset = Dataset("jsonl", f"{s3}/reading/gone/a.jsonl")
    [unit] = list_units(dataset)
    fsspec.filesystem("s3").rm(dataset.path)
    with pytest.raises(FileNotFoundError):
        list(read_batches(dataset, unit))


def test_missing_credentials_are_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is the first thing that goes wrong for whoever comes to S3."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(fsspec.config, "conf", {})
    system = fsspec.get_filesystem_class("s3")
    system.clear_instance_cache()
    try:
        with pytest.raises(
            RunError, match=r"cannot read s3://no-such/\*\.jsonl: .*; give them, for S3 as AWS_"
        ):
            list_units(Dataset("jsonl", "s3://no-such/*.jsonl"))
    finally:
        system.clear_instance_cache()  # the next test has credentials
