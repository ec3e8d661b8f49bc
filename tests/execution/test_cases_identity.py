"""One recipe, one identity: what a result depends on is part of it, accidents of a program are not."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from treadle import lower, run, step
from treadle.errors import DriftError
from treadle.execution import StepDrifted, StepRunner, StepSpec, StepState

DAY = "2026.01.01"


def noop(path: str) -> None:
    """Do nothing."""


def spec_id(attributes: Any) -> str:
    return StepSpec("a", noop, hash_attrs=attributes, output_path_prefix="/nowhere").id


def make(factor: int) -> Any:
    @step
    def scaled(value: int) -> int:
        return value * factor

    return scaled


def test_functions_of_one_text_that_captured_different_values_share_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that knows the source text alone gives the second task what the first has made."""
    monkeypatch.setenv("TREADLE_PREFIX", str(tmp_path))
    for factor in (2, 3, 2):
        handle = make(factor)(10)
        assert run(handle)[handle.id] == 10 * factor
    assert lower(make(2)(10)).id == lower(make(2)(10)).id


def test_the_order_of_a_dict_is_no_part_of_the_identity() -> None:
    inner = {"x": 1, "y": [{"p": 1, "q": 2}], "z": 3}
    found = {
        spec_id({key: dict(reversed(inner.items())) if key == "b" else inner for key in order})
        for order in permutations("abc")
    }
    assert len(found) == 1


def test_equal_values_are_one_whether_shared_or_copied() -> None:
    """A hash that follows references tells a shared list from two copies, though nobody else can."""
    one = [1, 2]
    assert spec_id({"a": one, "b": one}) == spec_id({"a": [1, 2], "b": [1, 2]})
    assert spec_id({"a": one, "b": one}) != spec_id({"a": [1, 2], "b": [2, 1]})


def old(path: str) -> str:
    Path(path, "x.txt").write_text("old")
    return "old"


def new(path: str) -> str:
    Path(path, "x.txt").write_text("new!")
    return "new"


def test_changed_code_under_one_version_is_told_by_the_plan_and_forced_alone(tmp_path: Path) -> None:
    """Where the old result is served in silence, and deleting it is an error, people stop trusting it."""
    ran: list[str] = []

    def spec(fn: Any) -> list[StepSpec]:
        other = StepSpec("other", lambda path: ran.append("other"), output_path_prefix=str(tmp_path))
        return [StepSpec("a", fn, version=DAY, output_path_prefix=str(tmp_path)), other]

    StepRunner().run(spec(old))
    events: list[Any] = []
    runner = StepRunner(reporter=events.append)
    changed = spec(new)
    states = {each.name: each for each in runner.plan(changed).steps}
    assert states["a"].state is StepState.DRIFTED
    assert states["a"].reason == "the code of its function has changed since it was built"
    assert states["other"].state is StepState.CACHED
    assert runner.run(changed)[changed[0].id] == "old"
    assert [event.id for event in events if isinstance(event, StepDrifted)] == [f"a@{DAY}"]
    with pytest.raises(DriftError, match=f"a@{DAY}: the code of its function has changed"):
        runner.run(changed, on_drift="error")
    ran.clear()
    assert runner.run(changed, force=["a"])[changed[0].id] == "new"
    assert not ran, "it alone"
    assert Path(changed[0].output_path, "x.txt").read_text() == "new!"
    assert runner.plan(changed).count(StepState.CACHED) == 2


def test_a_changed_recipe_under_one_version_is_drift_and_rebuilt_on_demand(tmp_path: Path) -> None:
    def spec(rate: float) -> StepSpec:
        return StepSpec(
            "a", lambda path: rate, hash_attrs={"rate": rate}, version=DAY, output_path_prefix=str(tmp_path)
        )

    runner = StepRunner()
    assert runner.run([spec(0.1)])[f"a@{DAY}"] == 0.1
    assert runner.run([spec(0.2)])[f"a@{DAY}"] == 0.1
    assert runner.run([spec(0.2)], on_drift="rebuild")[f"a@{DAY}"] == 0.2
    assert runner.run([spec(0.2)], on_drift="error")[f"a@{DAY}"] == 0.2
