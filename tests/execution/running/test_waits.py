"""Bodies of several processes that wait for each other: a circle is seen, and one of them gives way."""

from contextlib import suppress
from pathlib import Path

import pytest

from treadle.artifacts import open_store
from treadle.artifacts.waits import read_wait, wait_place
from treadle.errors import StepError
from treadle.execution import StepSpec
from treadle.execution.running.inside import inside
from treadle.execution.running.waits import Waits


def steps(folder: Path, count: int) -> list[StepSpec]:
    """Every other one lies in another store."""
    stores = [str(folder / "one"), str(folder / "two")]
    return [
        StepSpec(f"s{n}", lambda path: None, output_path_prefix=stores[n % 2], hash_attrs={"n": n})
        for n in range(count)
    ]


def refused(waits: list[Waits], around: list[StepSpec], wanted: list[StepSpec]) -> list[int]:
    """Who gives way, when all look again and again, as runs do."""
    found = []
    for _ in range(2):
        for number, (wait, body, step) in enumerate(zip(waits, around, wanted, strict=True)):
            with suppress(StepError):
                wait.begin([inside(body)], step)
                continue
            found.append(number)
    return sorted(set(found))


@pytest.mark.parametrize("count", [2, 3])
def test_of_a_circle_one_gives_way(tmp_path: Path, count: int) -> None:
    listed = steps(tmp_path, count) if count == 2 else steps(tmp_path, 6)[::2]
    waits = [Waits(f"run-{n}") for n in range(count)]
    wanted = [*listed[1:], listed[0]]
    assert len(refused(waits, listed, wanted)) == 1


def test_a_chain_is_no_circle_and_leaves_nothing(tmp_path: Path) -> None:
    listed = steps(tmp_path, 4)[::2] + steps(tmp_path, 6)[4:5]
    waits = [Waits("run-0"), Waits("run-1")]
    assert refused(waits, listed[:2], listed[1:]) == []
    store = open_store(str(listed[0].output_path_prefix))
    assert len(list(store.ledger.leases())) == 2
    assert list(store.leases()) == [], "nobody is at work"
    for wait, step in zip(waits, listed[1:], strict=True):
        wait.end(step)
        wait.end(step)
    assert list(store.ledger.leases()) == []


def test_the_place_of_a_wait_tells_who_waits_for_what() -> None:
    assert read_wait(wait_place("ab12", "cd34")) == ("ab12", "cd34")
    assert read_wait("train/ab12") is None
