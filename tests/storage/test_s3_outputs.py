"""Outputs on object stores: nothing is seen before the manifest, and no writer is lost without notice."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest

from tests.chaos.proxy import Fault, Proxy, Seen
from tests.storage.publishing import manifest_of, publish, read, spec_of, staged
from treadle.errors import ArgumentError, ArtifactError
from treadle.storage import conditional
from treadle.storage.conditional import ConditionalObject
from treadle.storage.output_manifest import read_output_manifest
from treadle.storage.reach import forget_reaches
from treadle.storage.target import Target, target_for

MODES = ["error", "overwrite", "append"]


@pytest.fixture(params=["memory", "s3"])
def url(request: pytest.FixtureRequest) -> str:
    """A prefix where nothing is."""
    if request.param == "memory":
        return f"memory://{uuid4().hex}/out"
    return f"{request.getfixturevalue('s3')}/{uuid4().hex}/out"


class OneAtATime(Proxy):
    """The server of the tests looks at the condition and writes in two steps; a real one does it in one."""

    def forward(self, *request: Any) -> tuple[int, Any, bytes]:
        """Not while another request is on."""
        with self._condition:
            return super().forward(*request)


@pytest.fixture
def proxy(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Stands between the clients of this test and the store."""
    made = OneAtATime(os.environ["AWS_ENDPOINT_URL"])
    made._condition = threading.RLock()  # type: ignore[assignment]
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
    monkeypatch.setattr(conditional, "_PROBED", set())
    _connect_anew()
    yield made
    made.close()
    monkeypatch.undo()
    _connect_anew()


def _connect_anew() -> None:
    forget_reaches()
    fsspec.filesystem("s3").clear_instance_cache()


@pytest.fixture
def impatient(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up at the first error."""
    monkeypatch.setenv("TREADLE_OUTAGE_SECONDS", "0")
    forget_reaches()


def listed(url: str) -> set[str]:
    """Every object of the output, by its path in it."""
    fs, path = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return {each.removeprefix(f"{path}/") for each in fs.find(path)}


def prepared(url: str, mode: str) -> Target:
    target = target_for("out", spec_of(url, mode))
    target.prepare()
    return target


def put(target: Target, *values: object) -> None:
    files = staged(target, values)
    target.publish(files, manifest_of(files))


@pytest.mark.parametrize("mode", MODES)
def test_an_output_is_its_manifest_and_the_files_that_it_names(url: str, mode: str) -> None:
    published = publish(url, mode, [1, 2], [3])
    assert read(url) == [1, 2, 3]
    assert listed(url) == {"_manifest.json", *(each.name for each in published.files)}
    assert read_output_manifest(url).files == published.files


def test_nothing_is_left_on_this_machine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    publish(url, "error", [1])
    assert list(tmp_path.iterdir()) == []


def test_an_output_is_not_replaced_unless_the_mode_says_so(url: str) -> None:
    publish(url, "error", [1])
    before = listed(url)
    with pytest.raises(
        ArtifactError, match=r"already there and is never overwritten; .* overwrite or append"
    ):
        publish(url, "error", [2])
    assert listed(url) == before


@pytest.mark.parametrize("first", MODES)
def test_overwrite_leaves_only_the_new_files(url: str, first: str) -> None:
    publish(url, first, [1], [2])
    published = publish(url, "overwrite", [3])
    assert read(url) == [3]
    assert listed(url) == {"_manifest.json", published.files[0].name}


@pytest.mark.parametrize("first", MODES)
def test_append_puts_the_new_rows_after_the_old_ones(url: str, first: str) -> None:
    publish(url, first, [1], [2])
    assert publish(url, "append", [3], [4]).rows == 4
    assert read(url) == [1, 2, 3, 4]


def test_append_refuses_a_column_of_another_type_and_leaves_nothing(url: str) -> None:
    publish(url, "append", [1], columns={"a": "int64"})
    before = listed(url)
    with pytest.raises(ArtifactError, match=r"column 'a': expected int64, .* got string"):
        publish(url, "append", [2], columns={"a": "string"})
    assert listed(url) == before


@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_output_of_treadle_is_left_alone(url: str, mode: str) -> None:
    fsspec.core.url_to_fs(url)[0].pipe_file(f"{url}/letter.txt", b"dear")
    with pytest.raises(ArtifactError, match=r"without a _manifest.json \(letter.txt\), so it is no output"):
        publish(url, mode, [1])
    assert listed(url) == {"letter.txt"}


@pytest.mark.parametrize("mode", MODES)
def test_what_a_killed_writer_uploaded_is_neither_in_the_way_nor_removed(url: str, mode: str) -> None:
    """Nobody can know whether it is dead."""
    fsspec.core.url_to_fs(url)[0].pipe_file(f"{url}/data-01234567/part-00000.jsonl", b"9")
    publish(url, mode, [1])
    assert read(url) == [1]
    assert "data-01234567/part-00000.jsonl" in listed(url)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_withdrawn_leaves_what_was_there(url: str, mode: str) -> None:
    if mode != "error":
        publish(url, "error", [1])
    before = listed(url)
    target = prepared(url, mode)
    put(target, 2)
    target.withdraw()
    target.discard()
    assert listed(url) == before
    assert mode == "error" or read(url) == [1]


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_what_others_appended_meanwhile_survives_a_withdrawal(url: str, mode: str) -> None:
    publish(url, "error", [1])
    target = prepared(url, mode)
    put(target, 2)
    publish(url, "append", [3])
    target.withdraw()
    target.discard()
    assert read(url) == [1, 3]


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_goes_on_after_its_publication_does_not_publish_twice(
    url: str, mode: str, tmp_path: Path
) -> None:
    for _ in range(2):  # the second is killed before the checkpoint is removed, as far as the first can tell
        publish(url, mode, [2], keep=tmp_path / "kept")
    assert read(url) == [2]


def test_of_many_who_make_one_output_exactly_one_wins(proxy: Proxy, s3: str) -> None:
    url = f"{s3}/{uuid4().hex}/out"
    targets = [prepared(url, "error") for _ in range(4)]
    outcomes = _all_at_once([partial(put, each, n) for n, each in enumerate(targets)])
    [winner] = [number for number, each in enumerate(outcomes) if each is None]
    assert read(url) == [winner]
    assert all("another run has published there" in str(each) for each in outcomes if each is not None)
    assert listed(url) == {"_manifest.json", read_output_manifest(url).files[0].name}


def test_of_many_who_overwrite_one_output_exactly_one_wins(proxy: Proxy, s3: str) -> None:
    url = f"{s3}/{uuid4().hex}/out"
    publish(url, "error", [9])
    targets = [prepared(url, "overwrite") for _ in range(4)]
    outcomes = _all_at_once([partial(put, each, n) for n, each in enumerate(targets)])
    [winner] = [number for number, each in enumerate(outcomes) if each is None]
    assert read(url) == [winner]


def test_many_who_append_at_once_lose_nothing(proxy: Proxy, s3: str) -> None:
    url = f"{s3}/{uuid4().hex}/out"
    outcomes = _all_at_once([partial(publish, url, "append", [n]) for n in range(5)])
    assert not any(isinstance(each, Exception) for each in outcomes)
    assert sorted(read(url)) == [0, 1, 2, 3, 4]


def _all_at_once(acts: list[Callable[[], object]]) -> list[object]:
    """What each gives, or the ArtifactError that it raises."""
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> object:
        start.wait()
        try:
            return act()
        except ArtifactError as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [Fault.RESET, Fault.LOST_ANSWER, Fault.TORN_ANSWER, Fault.ERROR_AFTER])
def test_each_request_of_a_run_may_fail_once(proxy: Proxy, s3: str, mode: str, kind: Fault) -> None:
    """As if nothing had been: after a lost answer, too, no file is there twice and none is missing."""
    url = f"{s3}/{uuid4().hex}/out"
    failed: set[tuple[str, str]] = set()

    def once(seen: Seen) -> Fault | None:
        request = (seen.method, seen.path)
        if request in failed:
            return None
        failed.add(request)
        return kind

    for value in [1, 2] if mode != "error" else [1]:
        proxy.choose = once
        publish(url, mode, [value])
        proxy.well()
        failed.clear()
    assert read(url) == {"error": [1], "overwrite": [2], "append": [1, 2]}[mode]
    assert listed(url) == {"_manifest.json", *(each.name for each in read_output_manifest(url).files)}


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_after_a_lost_answer_a_publication_is_known_although_others_have_appended_since(
    proxy: Proxy, s3: str, mode: str
) -> None:
    """Else it would be published twice, or its files removed although the manifest names them."""
    url = f"{s3}/{uuid4().hex}/out"
    publish(url, "error", [1])
    tries: list[Seen] = []

    def lose_the_first_answer(seen: Seen) -> Fault | None:
        if seen.method != "PUT" or not seen.path.endswith("_manifest.json"):
            return None
        tries.append(seen)
        if len(tries) == 1:
            return Fault.LOST_ANSWER
        proxy.well()
        publish(url, "append", [3])
        return None

    proxy.choose = lose_the_first_answer
    publish(url, mode, [2])
    assert read(url) == ([1, 2, 3] if mode == "append" else [2, 3])


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("kind", [Fault.RESET, Fault.LOST_ANSWER])
def test_an_outage_at_any_request_of_a_publication_leaves_the_old_or_the_new(
    proxy: Proxy, s3: str, mode: str, kind: Fault
) -> None:
    new = [1, 2] if mode == "append" else [2]
    for request in range(1, 20):
        url = f"{s3}/{uuid4().hex}/out"
        publish(url, "error", [1])
        target = prepared(url, mode)
        proxy.fault(request, kind, burst=1000)
        failed = _fails(target)
        reached = any(each.end == kind for each in proxy.seen)
        proxy.seen.clear()
        proxy.well()
        target.discard()
        assert read(url) in ([[1], new] if failed else [new])
        assert failed or not reached
        if not reached:
            assert request > 3
            return
    pytest.fail("no publication takes that many requests")


def _fails(target: Target) -> bool:
    try:
        put(target, 2)
    except ArtifactError as error:
        return "out of reach for" in str(error)
    return False


@pytest.mark.usefixtures("impatient")
def test_replaced_files_that_cannot_be_removed_are_told_and_no_reason_to_fail(proxy: Proxy, s3: str) -> None:
    url = f"{s3}/{uuid4().hex}/out"
    publish(url, "error", [1])
    target = prepared(url, "overwrite")
    put(target, 2)
    proxy.fault(1, Fault.RESET, burst=100)
    said = target.settle()
    proxy.well()
    assert said is not None
    assert said.startswith("output 'out': files that were replaced are still there: ")
    assert read(url) == [2]


def test_a_store_that_does_not_keep_the_conditions_is_refused(proxy: Proxy, s3: str) -> None:
    url = f"{s3}/{uuid4().hex}/out"
    proxy.ignores_conditions = True
    with pytest.raises(ArtifactError, match="of two who write one object both succeed"):
        publish(url, "error", [1])
    assert listed(url) == set()


def test_a_kind_of_storage_without_known_conditions_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"ftp://host/out/.*: cannot write an output to ftp://"):
        publish("ftp://host/out", "error", [1])


def test_an_object_is_replaced_or_removed_only_as_it_was_read(url: str) -> None:
    thing = ConditionalObject(url)
    assert thing.read() is None
    assert thing.put(b"1", None)
    assert not thing.put(b"2", None)
    first = thing.read()
    assert first is not None
    assert thing.put(b"2", first.tag)
    assert not thing.put(b"3", first.tag)
    assert not thing.remove(first.tag)
    second = thing.read()
    assert second is not None
    assert second.content == b"2"
    assert thing.remove(second.tag)
    assert thing.read() is None
    assert not thing.put(b"4", second.tag)
