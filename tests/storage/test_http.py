"""Reading by HTTP, from real servers on the loopback with the faults that servers have."""

from __future__ import annotations

import errno
import gzip
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.storage.web import Site, serving
from treadle.errors import ArgumentError, MissingExtraError, RunError
from treadle.storage import Dataset, list_units, read_batches, read_table
from treadle.storage.http_file import HttpFile
from treadle.storage.source_file import open_source

LINES = b"".join(b'{"id": %d, "text": "%s"}\n' % (number, b"word " * 20) for number in range(5000))
IDS = list(range(5000))


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site(files={"/a.jsonl": LINES, "/a.jsonl.gz": gzip.compress(LINES)})
    with serving(site):
        yield site


def ids(dataset: Dataset) -> list[int]:
    return [
        row["id"]
        for unit in list_units(dataset)
        for batch in read_batches(dataset, unit)
        for row in batch.records
    ]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_one_url_is_one_file(site: Site, name: str) -> None:
    dataset = Dataset("jsonl", f"{site.url}/{name}")
    [unit] = list_units(dataset)
    assert (unit.id, unit.source, unit.bytes) == ("00000-a", dataset.path, len(site.files[f"/{name}"]))
    assert ids(dataset) == IDS


def test_a_query_is_no_part_of_the_name(site: Site) -> None:
    dataset = Dataset("jsonl", f"{site.url}/a.jsonl.gz?signature=x*y/z.txt")
    assert list_units(dataset)[0].id == "00000-a"
    assert ids(dataset) == IDS


@pytest.mark.parametrize("promise", [True, False])
def test_a_large_file_is_cut_only_where_the_server_gives_parts(site: Site, promise: bool) -> None:
    site.promise_ranges = promise
    dataset = Dataset("jsonl", f"{site.url}/a.jsonl", split_bytes=200_000)
    units = list_units(dataset)
    assert len(units) == (-(-len(LINES) // 200_000) if promise else 1)
    assert ids(dataset) == IDS


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("promise", [True, False])
def test_parquet_is_read_also_from_a_server_that_gives_no_parts(
    site: Site, tmp_path: Path, ranges: bool, promise: bool
) -> None:
    """A server may also promise parts and not keep it, as one behind a proxy."""
    table = pa.table({"id": IDS, "text": ["x" * 50] * len(IDS)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=500)
    site.files["/a.parquet"] = (tmp_path / "a.parquet").read_bytes()
    site.ranges, site.promise_ranges = ranges, promise
    dataset = Dataset("parquet", f"{site.url}/a.parquet", split_bytes=10_000)
    assert len(list_units(dataset)) == 1 or promise
    assert ids(dataset) == IDS


@pytest.mark.parametrize("ranges", [True, False])
def test_any_place_of_a_file_can_be_read(site: Site, ranges: bool) -> None:
    site.ranges = ranges
    with open_source(f"{site.url}/a.jsonl") as file:
        assert file.seek(0, os.SEEK_END) == len(LINES)
        assert file.read(1) == b""
        for place, size in [(5000, 10), (5010, 400_000), (3, 4), (len(LINES) - 5, 100), (0, 7), (7, 7)]:
            file.seek(place)
            assert file.read(size) == LINES[place : place + size]
        file.seek(1)
        assert file.read() == LINES[1:]


def test_reading_on_takes_one_request(site: Site) -> None:
    """Each costs the way to the server and back."""
    with open_source(f"{site.url}/a.jsonl") as file:
        while file.read(1000):
            pass
    assert [method for method, _, _ in site.asked] == ["HEAD", "GET"]


def test_a_part_asks_for_nothing_that_comes_before_it(site: Site) -> None:
    """Else the last of n parts would bring the whole file again, and all of them n / 2 times the file."""
    dataset = Dataset("jsonl", f"{site.url}/a.jsonl", split_bytes=200_000)
    unit = list_units(dataset)[2]
    site.asked.clear()
    assert sum(len(each.records) for each in read_batches(dataset, unit)) > 1000
    starts = [int(part.removeprefix("bytes=").split("-")[0]) for _, _, part in site.asked if part]
    assert [method for method, _, _ in site.asked] == ["HEAD"] + ["GET"] * len(starts)
    assert min(starts) >= 400_000 - 1


@pytest.mark.parametrize("length", ["told", "chunked", "untold"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_cut_connection_is_an_error_and_never_a_shorter_file(site: Site, length: str, name: str) -> None:
    site.cut_at, site.length = 5_000, length
    dataset = Dataset("jsonl", f"{site.url}/{name}")
    [unit] = list_units(dataset)
    with pytest.raises(OSError) as caught:
        list(read_batches(dataset, unit))
    assert caught.value.errno == errno.ECONNRESET
    assert caught.value.filename == dataset.path
    assert "got 5,000 of " in str(caught.value)
    if length != "chunked":
        assert f"of {len(site.files[f'/{name}']):,} bytes" in str(caught.value)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_connection_is_no_damage_of_the_file(
    site: Site, tmp_path: Path, kind: str, ranges: bool
) -> None:
    """Damage would go into the quarantine, and the run on; the file is whole and can be read another time."""
    path, table = tmp_path / f"a.{kind}", pa.table({"id": IDS, "text": [f"{each}" * 50 for each in IDS]})
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=500, compression="none")
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=500)
    site.files[f"/a.{kind}"] = path.read_bytes()
    site.ranges = ranges
    dataset = Dataset(kind, f"{site.url}/a.{kind}")
    units = list_units(dataset)
    assert ids(dataset) == IDS
    site.cut_at = 5_000
    with pytest.raises(OSError) as caught:
        list(read_batches(dataset, units[0]))
    assert (caught.value.errno, caught.value.filename) == (errno.ECONNRESET, dataset.path)
    for split_bytes in (None, 1000):
        site.cut_at = 100
        with pytest.raises(OSError, match="got "):
            ids(Dataset(kind, dataset.path, split_bytes=split_bytes))


def test_a_file_without_a_length_is_read_when_its_end_is_marked(site: Site) -> None:
    site.length, site.head = "chunked", False
    dataset = Dataset("jsonl", f"{site.url}/a.jsonl", split_bytes=10)
    [unit] = list_units(dataset)
    assert (unit.bytes, unit.identity) == (0, "")
    assert ids(dataset) == IDS
    with HttpFile(dataset.path) as file:
        assert file.seek(-3, os.SEEK_END) == len(LINES) - 3
        assert file.read() == LINES[-3:]


def test_a_file_whose_end_nobody_can_see_is_refused(site: Site) -> None:
    site.length, site.head = "untold", False
    dataset = Dataset("jsonl", f"{site.url}/a.jsonl")
    with pytest.raises(OSError, match="the server tells no length"):
        ids(dataset)


@pytest.mark.parametrize("head", [True, False])
def test_a_server_that_knows_no_head_is_asked_otherwise(site: Site, head: bool) -> None:
    """One that answers it, with the length of that answer, would make the file an empty one."""
    site.head, site.empty_head = head, True
    dataset = Dataset("jsonl", f"{site.url}/a.jsonl")
    assert list_units(dataset)[0].bytes == len(LINES)
    assert ids(dataset) == IDS


def test_redirects_are_followed(site: Site) -> None:
    site.redirect["/old.jsonl"] = "/a.jsonl"
    dataset = Dataset("jsonl", f"{site.url}/old.jsonl", split_bytes=200_000)
    assert list_units(dataset)[0].id == "00000-old@0"
    assert ids(dataset) == IDS


def test_the_identity_follows_the_content(site: Site) -> None:
    """A checkpoint takes a unit for done by it."""
    path = f"{site.url}/a.jsonl"
    seen = set()
    for headers in ({}, {"ETag": '"1"'}, {"ETag": '"2"'}, {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}):
        site.headers = headers
        [unit] = list_units(Dataset("jsonl", path))
        assert [unit] == list(list_units(Dataset("jsonl", path)))
        seen.add(unit.identity)
    site.files["/a.jsonl"] += b"{}\n"
    seen.add(list_units(Dataset("jsonl", path))[0].identity)
    assert len(seen) == 5
    assert "" not in seen


@pytest.mark.parametrize("change", ["size", "version"])
def test_a_file_that_changes_while_it_is_read_is_an_error(site: Site, change: str) -> None:
    site.headers = {"ETag": '"1"'}
    with open_source(f"{site.url}/a.jsonl") as file:
        file.read(10)
        if change == "size":
            site.files["/a.jsonl"] += b"{}\n"
        else:
            site.headers = {"ETag": '"2"'}
        file.seek(400_000)
        with pytest.raises(OSError, match="changed while it was read") as caught:
            file.read(10)
    assert caught.value.errno == errno.ESTALE


def test_another_part_than_the_one_asked_for_is_an_error(site: Site) -> None:
    site.shift = 1
    with open_source(f"{site.url}/a.jsonl") as file:
        file.seek(400_000)
        with pytest.raises(OSError, match="expected the bytes from 400000, the server sends bytes 400001-"):
            file.read(10)


def test_what_is_not_there_is_named(site: Site) -> None:
    dataset = Dataset("jsonl", f"{site.url}/none.jsonl")
    with pytest.raises(ArgumentError, match=f"no jsonl file at {dataset.path}: the server answers 404"):
        list_units(dataset)
    there = Dataset("jsonl", f"{site.url}/a.jsonl")
    [unit] = list_units(there)
    site.files.clear()
    with pytest.raises(FileNotFoundError) as caught:
        list(read_batches(there, unit))
    assert caught.value.filename == there.path


@pytest.mark.parametrize(("status", "number"), [(500, errno.EIO), (403, errno.EACCES)])
def test_a_server_that_refuses_is_an_error_with_its_answer(site: Site, status: int, number: int) -> None:
    site.status = status
    url = f"{site.url}/a.jsonl"
    with pytest.raises(RunError, match=f"cannot read {url}: the server answers {status}") as caught:
        list_units(Dataset("jsonl", url))
    cause = caught.value.__cause__
    assert isinstance(cause, OSError)
    assert cause.errno == number


def test_a_server_that_is_not_there_is_an_error_that_names_the_url() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        told = f"cannot read http://{host}/a.jsonl: no connection to {host}: Connection refused; see that"
        with pytest.raises(RunError, match=told) as caught:
            list_units(Dataset("jsonl", f"http://{host}/a.jsonl"))
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


def test_a_host_that_nobody_knows_is_an_error_that_names_it() -> None:
    with pytest.raises(
        RunError, match=r"no connection to no-such-host\.invalid:80: .*; see that the address"
    ) as caught:
        list_units(Dataset("jsonl", "http://no-such-host.invalid/a.jsonl"))
    cause = caught.value.__cause__
    assert isinstance(cause, OSError)
    assert cause.errno == errno.EHOSTUNREACH


@pytest.mark.parametrize("name", ["*.jsonl", "a[12].jsonl", "folder/", ""])
def test_files_cannot_be_listed_by_http(site: Site, name: str) -> None:
    with pytest.raises(ArgumentError, match="files cannot be listed by HTTP"):
        list_units(Dataset("jsonl", f"{site.url}/{name}"))
    assert site.asked == []


def test_bytes_that_come_in_another_form_are_refused(site: Site) -> None:
    """They would be counted wrong: the length is that of the form."""
    site.headers = {"Content-Encoding": "br"}
    with pytest.raises(RunError, match="expected the bytes as they are, the server sends them in br"):
        list_units(Dataset("jsonl", f"{site.url}/a.jsonl"))
    site.headers = {"Content-Encoding": "gzip"}  # said of a file that is gzip itself by many servers
    assert ids(Dataset("jsonl", f"{site.url}/a.jsonl.gz")) == IDS


def test_an_empty_file_has_no_rows(site: Site) -> None:
    site.files["/e.jsonl"] = b""
    dataset = Dataset("jsonl", f"{site.url}/e.jsonl", columns=("id",))
    assert (list_units(dataset)[0].bytes, read_table(dataset).num_rows) == (0, 0)


WITHOUT = """
import sys
sys.modules["aiohttp"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "aiohttp" else find(name, *more)
from treadle.storage import Dataset, list_units
try:
    list_units(Dataset("jsonl", "http://127.0.0.1:1/a.jsonl"))
except Exception as error:
    print(type(error).__name__, error)
"""


def test_without_the_package_the_line_that_installs_it_is_told() -> None:
    told = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert told.stdout.startswith(MissingExtraError.__name__)
    assert "pip install 'treadle[http]'" in told.stdout
