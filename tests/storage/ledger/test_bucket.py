"""What a ledger of objects asks of a storage, and how its objects are called."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treadle.errors import ArtifactError, LedgerError
from treadle.storage.ledger import names
from treadle.storage.ledger.bucket import Bucket
from treadle.storage.ledger.objects import ObjectLedger


@pytest.fixture(params=["local", "memory", "s3"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    if request.param == "s3":
        return Bucket(f"{request.getfixturevalue('s3')}/{uuid4().hex}")
    if request.param == "memory":
        return Bucket(f"memory://{uuid4().hex}")
    return Bucket(str(request.getfixturevalue("tmp_path")))


def test_of_many_who_make_one_object_one_succeeds(bucket: Bucket) -> None:
    contents = [f"number {number}".encode() for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda content: bucket.create("a/b.json", content), contents))
    assert made.count(True) == 1
    assert bucket.read("a/b.json") == contents[made.index(True)]
    assert bucket.find("a") == ["b.json"]


def test_a_second_try_after_a_lost_answer_finds_its_own_object(bucket: Bucket) -> None:
    assert bucket.create("a", b"mine")
    assert bucket.create("a", b"mine")
    assert not bucket.create("a", b"theirs")


def test_objects_are_replaced_listed_and_removed(bucket: Bucket) -> None:
    bucket.write("a/x", b"1")
    bucket.write("a/x", b"2")
    bucket.write("a/y/z", b"3")
    assert bucket.read("a/x") == b"2"
    assert sorted(bucket.find("a")) == ["x", "y/z"]
    bucket.remove(["a/x", "a/none"])
    assert bucket.read("a/x") is None
    assert bucket.find("none") == []


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, content: bytes) -> None:
        with path.open("wb") as file:
            file.write(content[:2])
        raise OSError(28, "No space left on device")

    bucket = Bucket(str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(LedgerError, match=r"a/b: cannot use the ledger .*No space left on device; see that"):
        bucket.create("a/b", b"content")
    assert bucket.find("") == []


def test_a_bucket_that_is_not_there_is_named(s3: str) -> None:
    with pytest.raises(
        LedgerError, match=r"s3://elsewhere/x/.*: cannot use the ledger of the store: .*bucket"
    ):
        Bucket("s3://elsewhere/x").create("a", b"content")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"not json"])
def test_a_damaged_note_is_told_by_its_path(tmp_path: Path, content: bytes) -> None:
    ledger, bucket = ObjectLedger(str(tmp_path), 30.0), Bucket(str(tmp_path))
    bucket.write(names.run_path("r"), content)
    bucket.write(f"{names.folder('a')}/{names.attempt(1, 'ab', 'r')}", content)
    with pytest.raises(ArtifactError, match=r"/runs/r\.json: this note is damaged: .*; remove it"):
        ledger.runs()
    with pytest.raises(ArtifactError, match=r"/a/@/attempt-.*\.json: this note is damaged: .*; remove it"):
        ledger.attempts("a")


@example("a/")
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_place_can_be_told_from_the_path_of_its_objects(place: str) -> None:
    path = f"{names.folder(place)}/{names.mark('build', 1)}"
    assert names.place_of(path.removeprefix(f"{names.PLACES}/")) == (place, "build-00000001.json")
    assert "//" not in path


def test_a_listing_knows_the_newest_the_standing_and_the_last_sign_of_life() -> None:
    found = names.listing(
        [
            names.mark("build", 1),
            names.mark("build", 2),
            names.lease(3, 9),
            names.lease(3, 10),
            names.lease(2, 40),
            names.attempt(5, "ab", "r/1"),
            names.attempt_of_build(6, 2, "r/2"),
            ".staging-12",
            "build-x.json",
            "readme",
        ]
    )
    assert (found.newest, found.standing, found.generation) == (2, 2, 10)
    assert [(each.time, each.run, each.build) for each in found.attempts] == [(5, "r/1", 0), (6, "r/2", 2)]
    assert found.untold == {1}
    withdrawn = names.listing([names.mark("build", 1), names.mark("build", 2), names.mark("withdrawn", 2)])
    assert (withdrawn.newest, withdrawn.standing) == (2, None)
    forgotten = names.listing([names.mark("build", 1), names.mark("forgotten", 2)])
    assert (forgotten.newest, forgotten.standing) == (2, None)
