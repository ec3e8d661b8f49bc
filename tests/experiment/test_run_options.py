"""`run` and `plan` with the options of a run: versions, selection, drift, a stream of steps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle import Runtime, StepSpec, run, step
from treadle.errors import ArgumentError, DriftError
from treadle.execution import Event, Handle, StepState, VersionsUnused
from treadle.execution.handles.versions import Versions
from treadle.experiment import plan
from treadle.kernel import Cached, Done


@step
def number(n: int, times: Runtime[int] = 1) -> int:
    return n * times


@step
def total(numbers: list[int]) -> int:
    return sum(numbers)


def test_unused_versions_go_to_the_reporter_before_anything_runs(tmp_path: Path) -> None:
    events: list[Event] = []
    handle = total([number(1)])
    versions = Versions(names={"number": "2026.02.03", "nubmer": "dev"})
    results = run(handle, prefix=tmp_path, versions=versions, reporter=events.append)
    assert "number@2026.02.03" in results
    assert events[0] == VersionsUnused(("nubmer",))


def test_the_unused_versions_of_a_stream_are_known_at_its_end(tmp_path: Path) -> None:
    events: list[Event] = []

    def numbers() -> Iterator[Handle[int]]:
        yield from (number(n) for n in range(3))

    results = run(numbers(), prefix=tmp_path, versions=Versions(names={"x": "dev"}), reporter=events.append)
    assert sorted(results.values()) == [0, 1, 2]
    assert events[-1] == VersionsUnused(("x",))


def test_select_runs_no_more_than_was_asked_for(tmp_path: Path) -> None:
    handle = total([number(1), number(2)])
    results = run(handle, prefix=tmp_path, select=["number"])
    assert [each.name for each in results.outcomes.values()] == ["number", "number"]


def test_a_plan_says_what_a_run_does(tmp_path: Path) -> None:
    handle = total([number(1), number(2)])
    before = plan(handle, prefix=tmp_path)
    assert [each.state for each in before.steps] == [StepState.RUN] * 3
    results = run(handle, prefix=tmp_path)
    assert {each.id for each in before.steps} == set(results)
    after = plan(handle, prefix=tmp_path, force=["total"])
    assert [(each.name, each.state) for each in after.steps if each.state is StepState.RUN] == [
        ("total", StepState.RUN)
    ]


def test_a_plan_lists_an_iterator(tmp_path: Path) -> None:
    made = plan((number(n) for n in range(3)), prefix=tmp_path)
    assert len(made.steps) == 3
    assert not list(tmp_path.iterdir())


def test_on_drift_reaches_the_run(tmp_path: Path) -> None:
    def old(path: str) -> int:
        return 1

    def new(path: str) -> int:
        return 2

    def spec(body: object) -> StepSpec:
        return StepSpec("drifting", body, output_path_prefix=str(tmp_path))  # type: ignore[arg-type]

    run(spec(old))
    with pytest.raises(DriftError):
        run(spec(new), on_drift="error")
    [served] = run(spec(new), on_drift="serve").outcomes.values()
    [rebuilt] = run(spec(new), on_drift="rebuild").outcomes.values()
    assert (type(served.outcome), type(rebuilt.outcome)) == (Cached, Done)


def test_several_iterators_are_refused(tmp_path: Path) -> None:
    """Which of them would be first?"""
    with pytest.raises(ArgumentError, match=r"handles\[0\]: expected a handle"):
        run(iter([number(1)]), iter([number(2)]), prefix=tmp_path)
