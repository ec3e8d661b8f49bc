"""A process that is killed at any of its writes leaves a store that the next run completes by itself."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.execution import killed
from treadle.artifacts import Store, open_store
from treadle.artifacts.workplace import is_left
from treadle.execution import StepRunner, StepSpec
from treadle.storage.ledger.process import is_gone

pytestmark = pytest.mark.slow

FILES = {
    "a": {"a.txt": b"a" * 100},
    "b": {"b.bin": bytes(300), "deep/er/b.txt": b"b" * 200},
    "c": {},
    "d": {"d.txt": b"d"},
}
EXPECTED = {"a": 1, "b": 1, "c": 1, "d": 1}


def files(folder: str) -> dict[str, bytes]:
    found = (each for each in Path(folder).rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


def value(step: StepSpec) -> object:
    return {"a": "a", "b": ["b", f"{step.output_path}/b.bin"], "c": 3}.get(step.name)


def check_whole(store: Store, step: StepSpec) -> None:
    """What stands is whole, to the last byte."""
    record = store.record(step.output_path)
    assert record is not None
    assert files(step.output_path) == FILES[step.name]
    assert {each.path for each in record.head.files} == set(FILES[step.name])
    if step.name != "d":
        assert store.load_value(step.output_path) == value(step)


def standing(store: Store, steps: list[StepSpec]) -> set[str]:
    return {each.name for each in steps if store.record(each.output_path) is not None}


def check_left_over(folder: Path) -> None:
    """Nothing is left, or its name says that its process is dead, so that it can be cleared."""
    hidden = [*folder.parent.glob(f".{folder.name}.*"), *folder.glob("*/.*")]
    for each in hidden:
        assert is_left(each.name.rpartition(".")[2]), each
    assert not list(folder.glob(".treadle/work/*"))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("scenario", ["new", "again"])
def test_killed_at_any_write_nothing_half_done_is_served(tmp_path: Path, scenario: str) -> None:
    script = Path(killed.__file__)
    done = subprocess.run(
        [sys.executable, "-c", f"exec(open({str(script)!r}).read())", tmp_path, scenario],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert [int(code) for _, code, *_ in lines] == [killed.KILLED] * (len(lines) - 1) + [0], done.stdout
    assert len(lines) > 40, "the writes were found"
    assert {"rename", "fsync", "COMMIT"} <= {each[2] for each in lines[:-1]}
    for n, *_ in lines:
        check_store(tmp_path / n, scenario)


def check_store(folder: Path, scenario: str) -> None:
    store, steps = open_store(str(folder)), killed.steps(folder)
    there = standing(store, steps)
    for step in steps:
        if step.name in there:
            check_whole(store, step)
    witness = Path(f"{folder}.ran")
    before = Counter(witness.read_text().split() if witness.exists() else [])
    StepRunner(1).run(steps)
    for step in steps:
        check_whole(store, step)
    after = Counter(witness.read_text().split())
    if scenario == "new":
        assert set((after - before).keys()) == set(EXPECTED) - there, "what stood was not done again"
    for step in steps:
        numbers = [each.number for each in store.records(store.place(step.output_path))]
        assert numbers == sorted(set(numbers))
        assert len(numbers) <= after[step.name]
    owners = store.ledger.owners(store.place(step.output_path) for step in steps).values()
    assert all(map(is_gone, owners)), "a lease is left only of a dead process, which anybody may take over"
    assert scenario == "again" or not owners
    store.workplace.sweep()
    check_left_over(folder)
    StepRunner(1).run(steps)
    assert Counter(witness.read_text().split()) == after, "now all is done"
    store.ledger.close()
