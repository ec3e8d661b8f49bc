"""The store brings ledger and files together."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.artifacts import (
    Artifact,
    Record,
    RecordBody,
    RecordHead,
    Store,
    close_store,
    heads,
    is_url,
    open_store,
)
from treadle.errors import ArtifactError, LeaseLostError
from treadle.execution import StepRunner, StepSpec
from treadle.storage.ledger import AttemptNote, Held
from treadle.testing import memory_store

Build = Callable[..., StepSpec]
NewHead = Callable[..., RecordHead]
NOTE = AttemptNote("r", "a-1", "a", "a/f", 1, "done", "", "2020-01-01T00:00:00+00:00", 0.5)


def commit(store: Store, output: str, head: RecordHead, body: RecordBody) -> None:
    claim = store.ledger.claim(store.place(output), lambda: None)
    assert not isinstance(claim, Held)
    work = store.workplace.open(output)
    if not is_url(work.path):
        Path(work.path, "x").touch()
    work.files()
    store.commit(claim, output, head, body, NOTE, work)
    work.close()


def test_one_store_for_a_prefix_however_it_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_store(store.prefix) is store
    assert open_store(f"{store.prefix}/") is store
    monkeypatch.chdir(Path(store.prefix).parent)
    assert open_store("store") is store
    assert open_store(f"file://{store.prefix}") is store


def test_places_are_relative_inside_and_absolute_outside(store: Store) -> None:
    for place, path in (("a/f", f"{store.prefix}/a/f"), ("/other/f", "/other/f"), ("s3://b/x", "s3://b/x")):
        assert store.place(path) == place
        assert store.output_path(place) == path
    assert store.place(f"{store.prefix}x/f") == f"{store.prefix}x/f"


def test_a_commit_is_read_back(store: Store, new_head: NewHead, body: RecordBody) -> None:
    output = f"{store.prefix}/a/f"
    assert store.record(output) is None
    commit(store, output, new_head(), body)
    assert store.record(output) == Record(1, new_head(), body)
    assert heads([(store.prefix, output), (store.prefix, f"{output}2")]) == {output: (1, new_head())}
    assert store.load_value(output) == (1,)
    assert Path(output, "x").exists()


def test_records_are_the_history_and_the_last_one_stands(
    store: Store, new_head: NewHead, body: RecordBody
) -> None:
    output = f"{store.prefix}/a/f"
    for build in ("b1", "b2"):
        commit(store, output, new_head(build=build), body)
    assert [each.head.build for each in store.records("a/f")] == ["b1", "b2"]
    standing = store.record(output)
    assert standing is not None
    assert standing.head.build == "b2"


def test_what_is_forgotten_has_no_value_any_more(store: Store, build: Build) -> None:
    step = build("a")
    assert store.load_value(step.output_path) == Artifact(step.output_path)
    store.forget(step.output_path)
    with pytest.raises(ArtifactError, match=f"{step.output_path}: .* its record is gone; run again"):
        store.load_value(step.output_path)
    assert len(store.records(store.place(step.output_path))) == 1


def test_a_store_that_was_closed_is_opened_anew(store: Store, build: Build) -> None:
    step = build("a")
    close_store(store.prefix)
    assert open_store(store.prefix) is not store
    assert open_store(store.prefix).load_value(step.output_path) == Artifact(step.output_path)


def test_in_memory_what_is_forgotten_takes_no_memory(new_head: NewHead, body: RecordBody) -> None:
    with memory_store() as store:
        output, other = f"{store.prefix}/a/f", f"{store.prefix}/b/f"
        for path in (output, other, output):
            commit(store, path, new_head(), body)
        store.forget(output)
        assert store.record(output) is None
        assert store.records("a/f") == []
        assert store.record(other) == Record(1, new_head(), body)
        commit(store, output, new_head(build="b2"), body)
        assert [(each.number, each.head.build) for each in store.records("a/f")] == [(3, "b2")]


def test_a_claim_that_was_lost_changes_nothing(store: Store, new_head: NewHead, body: RecordBody) -> None:
    output = f"{store.prefix}/a/f"
    commit(store, output, new_head(), body)
    claim = store.ledger.claim("a/f", lambda: None)
    assert not isinstance(claim, Held)
    store.ledger.release(claim)
    work = store.workplace.open(output)
    Path(work.path, "new").touch()
    work.files()
    with pytest.raises(LeaseLostError):
        store.commit(claim, output, new_head(build="b2"), body, NOTE, work)
    work.close()
    assert [each.name for each in Path(output).iterdir()] == ["x"]
    assert heads([(store.prefix, output)])[output][1].build == "b1"


@pytest.mark.parametrize("column", ["head", "body"])
def test_damage_is_told_with_the_ledger_and_the_place_and_never_served(
    store: Store, build: Build, column: str
) -> None:
    step = build("a")
    store.ledger.close()
    ledger = Path(store.prefix, ".treadle", "ledger.db")
    with sqlite3.connect(ledger) as connection:
        connection.execute(f"UPDATE builds SET {column} = replace({column}, 'a', 'b')")
    connection.close()
    store.refresh()
    words = rf"{ledger}: build 1 of {store.place(step.output_path)} is damaged.*treadle \w+ a/"
    with pytest.raises(ArtifactError, match=words):
        store.load_value(step.output_path)
    if column == "head":
        with pytest.raises(ArtifactError, match=words):
            StepRunner().run([step])
    store.forget(step.output_path)
    assert StepRunner().run([step])[step.id] == Artifact(step.output_path)


def test_values_are_the_same_from_every_thread(store: Store) -> None:
    steps = [StepSpec(f"s{n}", lambda path, n=n: n, output_path_prefix=store.prefix) for n in range(8)]  # type: ignore[misc]
    StepRunner().run(steps)
    store.refresh()
    found: list[list[object]] = []
    threads = [
        threading.Thread(target=lambda: found.append([store.load_value(each.output_path) for each in steps]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(8))] * 8
