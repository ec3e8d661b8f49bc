"""gc removes what nobody needs, and nothing else, also beside runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.artifacts import Store, missing_record
from treadle.artifacts.gc import Garbage, GarbageKind, find_garbage, remove_garbage
from treadle.artifacts.verify import verify
from treadle.artifacts.workplace import beside
from treadle.errors import ArtifactError
from treadle.execution import StepRunner, StepSpec
from treadle.storage.ledger import Held

Build = Callable[..., StepSpec]


def told(garbage: list[Garbage], store: Store) -> list[tuple[GarbageKind, str]]:
    return [(each.kind, os.path.relpath(each.path, store.prefix)) for each in garbage]


def dead_name() -> str:
    """The name of a working folder of a process that has ended."""
    code = "from treadle.artifacts.workplace import beside; print(beside('/x').removeprefix('/.x.'))"
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_store_in_order_and_an_empty_one_have_no_garbage(store: Store, build: Build) -> None:
    assert find_garbage(store) == []
    assert not Path(store.prefix).exists()
    build("a")
    build("b/c", version="2026.01.01")
    assert find_garbage(store) == []


def test_what_dead_processes_left_is_removed_and_what_living_ones_use_stays(
    store: Store, build: Build
) -> None:
    step = build("a")
    name = dead_name()
    work = Path(store.prefix, ".treadle", "work")
    (work / name / "deep").mkdir(parents=True)
    (work / name / "deep" / "file").write_text("12345")
    (work / "not ours").mkdir()
    living = Path(store.workplace.open(step.output_path).path)
    aside = Path(step.output_path).with_name(f".{Path(step.output_path).name}.{name}")
    aside.mkdir()
    (aside / "file").write_text("123")
    mine = Path(beside(step.output_path))
    mine.mkdir()
    found = find_garbage(store)
    assert told(found, store) == [
        (GarbageKind.WORK, f".treadle/work/{name}"),
        (GarbageKind.ASIDE, os.path.relpath(aside, store.prefix)),
    ]
    assert remove_garbage(store, found) == 8
    assert living.exists()
    assert mine.exists()
    assert (work / "not ours").exists()
    assert not aside.exists()
    assert list(verify(store)) == []


def test_an_output_without_a_record_is_removed(store: Store, build: Build) -> None:
    kept, lost, fixed = build("a"), build("b"), build("c", version="2026.01.01")
    for step in (lost, fixed):
        store.forget(step.output_path)
    found = find_garbage(store)
    assert told(found, store) == [
        (GarbageKind.UNRECORDED, store.place(lost.output_path)),
        (GarbageKind.UNRECORDED, "c/2026.01.01"),
    ]
    assert remove_garbage(store, found) == 16
    assert [each.exists() for each in map(Path, (kept.output_path, lost.output_path, fixed.output_path))] == [
        True,
        False,
        False,
    ]


def test_what_treadle_has_not_made_stays(store: Store, build: Build) -> None:
    build("a")
    for place in ("mine/file", f"cache/{'0' * 64}", f"blobs/{'1' * 64}/file", "a/notes.txt", "a/v1/x"):
        Path(store.prefix, place).parent.mkdir(parents=True, exist_ok=True)
        Path(store.prefix, place).touch()
    assert find_garbage(store) == []
    assert find_garbage(store, keep=set())[0].path.startswith(f"{store.prefix}/a/")


def test_with_keep_all_else_goes_record_and_files(store: Store, build: Build) -> None:
    kept, other = build("a"), build("b")
    found = find_garbage(store, keep={kept.output_path})
    assert found == [Garbage(other.output_path, 8, GarbageKind.UNWANTED, store.place(other.output_path), 1)]
    assert remove_garbage(store, found) == 8
    assert store.record(other.output_path) is None
    assert not Path(other.output_path).exists()
    assert store.record(kept.output_path) is not None
    with pytest.raises(ArtifactError, match=str(missing_record(other.output_path))):
        store.load_value(other.output_path)
    assert remove_garbage(store, found) == 0


def test_what_lies_outside_of_the_store_is_never_touched(store: Store, build: Build, tmp_path: Path) -> None:
    step = build("a", override_output_path=str(tmp_path / "out"))
    assert find_garbage(store, keep=set()) == []
    made_up = Garbage(step.output_path, 1, GarbageKind.UNWANTED, step.output_path, 1)
    with pytest.raises(ArtifactError, match="inside of the store"):
        remove_garbage(store, [made_up])
    sideways = Garbage(f"{store.prefix}/../out", 1, GarbageKind.UNRECORDED, "../out")
    assert remove_garbage(store, [sideways]) == 0
    assert Path(step.output_path, "out.txt").exists()


def test_no_link_is_followed(store: Store, build: Build, tmp_path: Path) -> None:
    """A folder of the store that lies on another disk by way of a link may belong to several stores."""
    step = build("a")
    shutil.move(Path(store.prefix, "a"), tmp_path / "elsewhere")
    Path(store.prefix, "a").symlink_to(tmp_path / "elsewhere")
    found = find_garbage(store, keep=set())
    assert remove_garbage(store, found) == 0
    assert Path(step.output_path, "out.txt").exists()
    other = build("b")
    shutil.move(other.output_path, tmp_path / "output")
    Path(other.output_path).symlink_to(tmp_path / "output")
    store.forget(other.output_path)
    remove_garbage(store, find_garbage(store))
    assert not Path(other.output_path).is_symlink()
    assert (tmp_path / "output" / "out.txt").exists()


def test_a_place_that_somebody_builds_is_left_alone(store: Store, build: Build) -> None:
    step = build("a")
    before = find_garbage(store, keep=set())
    claim = store.ledger.claim(store.place(step.output_path), lambda: None)
    assert not isinstance(claim, Held)
    assert find_garbage(store, keep=set()) == []
    assert remove_garbage(store, before) == 0
    store.ledger.release(claim)
    assert remove_garbage(store, before) == 8


def test_what_was_built_since_it_was_found_is_left_alone(store: Store, build: Build) -> None:
    wanted, lost = build("a"), build("b")
    store.forget(lost.output_path)
    found = find_garbage(store, keep=set())
    assert len(found) == 2
    build("a", force=True)
    build("b")
    assert remove_garbage(store, found) == 0
    assert list(verify(store)) == []
    assert store.record(wanted.output_path) is not None


def test_an_output_whose_record_cannot_be_read_is_left_to_its_owner(store: Store, build: Build) -> None:
    step = build("a")
    place = store.place(step.output_path)
    claim = store.ledger.claim(place, lambda: None)
    assert not isinstance(claim, Held)
    store.ledger.commit(claim, '{"format": 99}', "{}", store.ledger.attempts(place)[0], None)
    assert find_garbage(store, keep=set()) == []
    assert Path(step.output_path).exists()


def test_adopted_data_is_never_garbage(store: Store, build: Build) -> None:
    """Not even an output of the store itself that another step has adopted since, and not what lies in it."""
    output = build("a")
    adopted = StepSpec("b", None, source=output.output_path, output_path_prefix=store.prefix)
    StepRunner().run([adopted])
    store.forget(output.output_path)
    assert find_garbage(store) == []
    assert find_garbage(store, keep={adopted.output_path}) == []
    assert [each.path for each in find_garbage(store, keep=set())] == [output.output_path]


def test_an_output_that_holds_another_waits_until_that_is_gone(store: Store, build: Build) -> None:
    outer = build("a", override_output_path="x")
    inner = build("b", override_output_path="x/inner")
    assert find_garbage(store, keep={inner.output_path}) == []
    assert remove_garbage(store, find_garbage(store, keep=set())) == 8
    assert [each.path for each in find_garbage(store, keep=set())] == [outer.output_path]


def test_what_cannot_be_removed_is_told_and_the_rest_goes(
    store: Store, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = build("a"), build("b")
    found = find_garbage(store, keep=set())
    real = shutil.rmtree

    def refuse(path: Path) -> None:
        if path.parent.name == "a":
            raise PermissionError(13, "not yours", str(path))
        real(path)

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(
        ArtifactError, match=f"1 things could not be removed, 8 bytes were:\n  {first.output_path}"
    ):
        remove_garbage(store, found)
    assert not Path(second.output_path).exists()
    assert store.record(first.output_path) is None


def test_gc_beside_runs_takes_nothing_away_from_them(store: Store) -> None:
    """Every step is built several times over, and gc never rests meanwhile."""

    def fn(path: str) -> None:
        Path(path, "out.txt").write_text(path)

    steps = [StepSpec(f"s{n}", fn, output_path_prefix=store.prefix) for n in range(20)]
    over, freed, failures = threading.Event(), [], []

    def collect() -> None:
        while not over.is_set():
            try:
                freed.append(remove_garbage(store, find_garbage(store)))
            except Exception as error:  # noqa: BLE001 - asserted below, in the thread of the test
                failures.append(error)

    collector = threading.Thread(target=collect)
    collector.start()
    for _ in range(5):
        assert len(StepRunner(4).run(steps, force=[step.name for step in steps])) == 20
        assert list(verify(store)) == []
        for step in steps[::2]:
            store.forget(step.output_path)
    over.set()
    collector.join()
    assert failures == []
    assert len(StepRunner(4).run(steps)) == 20
    assert list(verify(store)) == []
    assert find_garbage(store) == []


def test_values_without_files_go_too(store: Store) -> None:
    steps = [StepSpec(f"s{n}", lambda path: 1, output_path_prefix=store.prefix) for n in range(20)]
    StepRunner().run(steps)
    found = find_garbage(store, keep={steps[0].output_path})
    assert len(found) == 19
    assert remove_garbage(store, found) == 0
    assert [each.place for each in store.ledger.places()] == [store.place(steps[0].output_path)]
    assert len(StepRunner().run(steps)) == 20
